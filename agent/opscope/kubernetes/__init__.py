"""A mutating admission webhook that observes the pods that ask for it.

Read in this order: injection.py (what a pod gets; pure), admission.py (an AdmissionReview in, one
out; pure), namespaces.py (annotations of namespaces, from the API server), webhook.py (HTTPS).
agent/deploy/chart installs it; cli/webhook.py starts it.

It never refuses a pod: what it cannot observe, or does not understand, is admitted unchanged.
"""
