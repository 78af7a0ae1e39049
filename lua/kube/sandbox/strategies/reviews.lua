-- Reviews: questions that are answered and not stored. Here everybody who has the token may do
-- everything, and nobody else may do anything.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local status = require "kube.sandbox.status"

local reviews = {}

local function rules()
  local all = json.array { "*" }
  return json.object {
    incomplete = false,
    resourceRules = json.array { json.object { verbs = all, apiGroups = all, resources = all } },
    nonResourceRules = json.array { json.object { verbs = all, nonResourceURLs = all } },
  }
end

local ATTRIBUTES = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

-- Refuses a question that names nothing or two things; `someone`: it must also say who.
local function check_access(document, someone)
  local resource = json.get(document, "spec", "resourceAttributes")
  local other = json.get(document, "spec", "nonResourceAttributes")
  local errors = {}
  if resource and other then
    local shown = ('{"Path":%s,"Verb":%s}'):format(json.encode(other.path or ""), json.encode(other.verb or ""))
    errors[1] = field.shown("spec.nonResourceAttributes", shown,
      "cannot be specified in combination with resourceAttributes")
  elseif not resource and not other then
    errors[1] = field.invalid("spec.resourceAttributes", nil, ATTRIBUTES)
  end
  if someone and not json.get(document, "spec", "user") and not json.get(document, "spec", "groups", 1) then
    errors[#errors + 1] = field.invalid("spec.user", "", "at least one of user or group must be specified")
  end
  if errors[1] then error(status.invalid({ kind = "", group = "authorization.k8s.io" }, "", errors)) end
end

local answers = {}

function answers.SelfSubjectAccessReview(_, document)
  check_access(document)
  return json.object { allowed = true }
end

function answers.SubjectAccessReview(_, document)
  check_access(document, true)
  return json.object { allowed = false }
end

answers.LocalSubjectAccessReview = answers.SubjectAccessReview

function answers.SelfSubjectRulesReview(_, document)
  if not json.get(document, "spec", "namespace") then error(status.bad_request("no namespace on request")) end
  document.spec = json.object {}
  return rules()
end

local function user_of(user)
  return json.object { username = user.name, uid = user.name, groups = json.array(user.groups) }
end

function answers.SelfSubjectReview(ctx, document)
  document.spec = nil
  document.metadata.creationTimestamp = ctx.S.clock:stamp()
  return json.object { userInfo = user_of(ctx.user) }
end

function answers.TokenReview(ctx, document)
  if not json.get(document, "spec", "token") then
    error(status.bad_request("token is required for TokenReview in authentication"))
  end
  if json.get(document, "spec", "token") ~= ctx.S.token then
    return json.object { user = json.object {}, error = "invalid bearer token" }
  end
  return json.object { authenticated = true, user = user_of(ctx.user) }
end

function reviews.of(R)
  return {
    answer = function(ctx, document)
      document.status = answers[R.kind](ctx, document)
      return document
    end,
  }
end

return reviews
