-- pod(name, rv, more): the JSON of a pod; more: { ns, uid, app (a label), node (spec.nodeName) }.
return function(name, rv, more)
  more = more or {}
  return ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"%s","uid":"%s",' ..
    '"resourceVersion":"%s","labels":{"app":"%s"}},"spec":{"nodeName":"%s"}}'):format(name,
    more.ns or "default", more.uid or "uid-" .. name, rv, more.app or "web", more.node or "n1")
end
