---@meta
-- Methods of clients that C provides. Never loaded.

--- One API server, as one user: kube.client, or of kube.new_client. It has the verbs of a session.
---@class kube.Client: kube.Session
local Client = {}

--- The address of the server.
---@return string
function Client:server() end

--- The context of the kubeconfig that it was made from; "" in a pod.
---@return string
function Client:context() end

--- The namespace of that context, or of the pod; nil where none is given, as in the sandbox.
---@return string?
function Client:namespace() end
