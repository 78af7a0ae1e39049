-- A kind whose own rules the sandbox does not know: it is checked against its schema, and whoever
-- writes it is told.
local unchecked = {}

function unchecked.of(R)
  local text = ("sandbox: %s is checked against its schema only"):format(R.kind_name)
  return {
    validate = function(ctx)
      if not ctx.request.internal then ctx:warn(text) end
    end,
  }
end

return unchecked
