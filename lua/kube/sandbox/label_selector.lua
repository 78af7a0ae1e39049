-- metav1.LabelSelector, as specs of objects have them: { matchLabels, matchExpressions }.
local label_selector = {}

local function holds(e, labels)
  local value = labels[e.key]
  if e.operator == "Exists" then return value ~= nil end
  if e.operator == "DoesNotExist" then return value == nil end
  local found = false
  for _, one in ipairs(e.values or {}) do found = found or value == one end
  return found == (e.operator == "In")
end

--- Whether it takes these labels (nil for none). An empty selector takes everything.
function label_selector.matches(selector, labels)
  labels = labels or {}
  for key, value in pairs(selector.matchLabels or {}) do
    if labels[key] ~= value then return false end
  end
  for _, e in ipairs(selector.matchExpressions or {}) do
    if not holds(e, labels) then return false end
  end
  return true
end

--- Whether it asks for nothing.
function label_selector.is_empty(selector)
  return next(selector.matchLabels or {}) == nil and next(selector.matchExpressions or {}) == nil
end

return label_selector
