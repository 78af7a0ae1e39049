-- Where the sandbox differs from the real server and is meant to, by "group/name" of the probe. At
-- most five; one that no longer differs fails the specs.
return {
  ["access/users with few rights or none"] = "there is one user, who may do everything: no RBAC",
}
