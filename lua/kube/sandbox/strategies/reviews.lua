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

local function check_access(document)
  local resource = json.get(document, "spec", "resourceAttributes")
  if (resource ~= nil) == (json.get(document, "spec", "nonResourceAttributes") ~= nil) then
    error(status.invalid({ kind = "", group = "authorization.k8s.io" }, "",
      { field.invalid("spec.resourceAttributes", resource, ATTRIBUTES) }))
  end
end

local answers = {}

function answers.SelfSubjectAccessReview(_, document)
  check_access(document)
  return json.object { allowed = true }
end

function answers.SubjectAccessReview(_, document)
  check_access(document)
  return json.object { allowed = false }
end

answers.LocalSubjectAccessReview = answers.SubjectAccessReview

function answers.SelfSubjectRulesReview(_, document)
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
