---@meta
-- kube.log and ctx.log, whose functions are made level by level. Never loaded.

kube.log = {}

--- Logs an error.
---@param message string
---@param fields? table<string, any> further keys of the line
function kube.log.error(message, fields) end

--- Logs a warning.
---@param message string
---@param fields? table<string, any>
function kube.log.warn(message, fields) end

--- Logs what is worth knowing.
---@param message string
---@param fields? table<string, any>
function kube.log.info(message, fields) end

--- Logs details, which are shown with --log-level debug.
---@param message string
---@param fields? table<string, any>
function kube.log.debug(message, fields) end

---@class kube.ContextLog
local Log = {}

--- Logs an error, with the controller and the key.
---@param message string
---@param fields? table<string, any> further keys of the line
function Log:error(message, fields) end

--- Logs a warning, with the controller and the key.
---@param message string
---@param fields? table<string, any>
function Log:warn(message, fields) end

--- Logs what is worth knowing, with the controller and the key.
---@param message string
---@param fields? table<string, any>
function Log:info(message, fields) end

--- Logs details, with the controller and the key.
---@param message string
---@param fields? table<string, any>
function Log:debug(message, fields) end
