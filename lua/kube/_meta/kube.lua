---@meta
-- What C provides as fields of kube, for scripts/docs and for editors. Never loaded.

---@class kube
local kube = {}

--- The host's own client: --kubeconfig, KUBECONFIG, or the pod's service account. Made when it is first used.
---@type kube.Client
kube.client = nil

--- The recorder that scripts share, under the name "moonwatch".
---@type kube.Recorder
kube.events = nil

--- Reads a place in an object, and is nil where anything on the way is missing or null: get(pod, "spec.nodeName"),
--- get(pod, "spec.containers[0].image"), get(pod, 'metadata.labels["app.kubernetes.io/name"]') with double quotes
--- around the key, or one key each, as one would index tables: get(pod, "metadata", "labels", "app"). A path with
--- `[*]` gives an array of all it finds.
---@param object? table
---@param path string|integer
---@param ... string|integer further keys
---@return any
function kube.get(object, path, ...) end

--- A deep copy that the script may change: of a cached object as the server sent it.
---@param value any
---@return any
function kube.copy(value) end

--- The key of an object: "namespace/name", or "name" where there is no namespace.
---@param object table
---@return string
function kube.key(object) end

--- Marks a table as a JSON array, which tells [] from {} when it is empty. Returns the same table.
---@param list? table
---@return table
function kube.array(list) end

--- Marks a table as a JSON object, which tells {} from [] when it is empty. Returns the same table.
---@param map? table
---@return table
function kube.object(map) end

--- A 64-bit integer, exactly, of a number, a text or another one: numbers of Lua are exact up to 2^53 only.
---@param value number|string
---@return integer
function kube.int64(value) end

--- JSON's null. Decoded objects have it where the document does; kube.get reads it as nil.
---@type lightuserdata
kube.null = nil

kube.json = {}

--- A value as JSON. Raises with the path of what cannot be written.
---@param value any
---@return string
function kube.json.encode(value) end

--- The value of a JSON text, without loss: arrays stay arrays when they are empty, null is kube.null, and integers
--- of 64 bits keep their digits. Raises with the place of what is not JSON.
---@param text string
---@return any
function kube.json.decode(text) end
