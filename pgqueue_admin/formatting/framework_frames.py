"""Which frames of a stack trace are a framework's: pages fold them, and history tells failures apart by the others.

Expressions that Python and Java (Spark's) read alike, without groups that capture. Fingerprints are stored: whoever
changes these makes one failure two, before and since, where its trace has such a frame.
"""

NET = r"(?:NServiceBus|System|Microsoft|Npgsql|Newtonsoft)\.|lambda_method"  # what a call begins with
PACKAGES = r"/(?:site|dist)-packages/"
PYTHON_ITSELF = r"/lib/python\d|<frozen "
ENGINE = r"pgqueue_admin/(?:transport|workers|archive|dialects)/"
PYTHON = f"{PACKAGES}|{PYTHON_ITSELF}|{ENGINE}"  # what a path has in it
