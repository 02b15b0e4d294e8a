"""Names under which strangers register names of their own: a wildcard over one of these allows everybody.

A wildcard must stand over two labels, which keeps out `*.com`; this short list keeps out the common suffixes of two and
three labels, country registries first and shared hosting after. It neither is nor needs to be complete.
"""

from __future__ import annotations


def _second_levels(country: str, labels: str) -> list[str]:
    return [f"{label}.{country}" for label in labels.split()]


SHARED = frozenset(
    _second_levels("uk", "co org me ltd plc net ac gov sch nhs")
    + _second_levels("au", "com net org edu gov id asn")
    + _second_levels("nz", "co net org ac govt geek school")
    + _second_levels("jp", "co ne or ac go ad ed gr lg")
    + _second_levels("kr", "co ne or re pe go ac")
    + _second_levels("cn", "com net org gov edu ac")
    + _second_levels("tw", "com net org edu gov idv")
    + _second_levels("hk", "com net org edu gov idv")
    + _second_levels("sg", "com net org edu gov per")
    + _second_levels("my", "com net org edu gov")
    + _second_levels("th", "co in or ac go net")
    + _second_levels("id", "co web or ac go my")
    + _second_levels("in", "co net org firm gen ind ac gov")
    + _second_levels("br", "com net org gov edu art blog")
    + _second_levels("ar", "com net org gov edu")
    + _second_levels("mx", "com net org gob edu")
    + _second_levels("za", "co net org web gov ac")
    + _second_levels("tr", "com net org gen gov edu")
    + _second_levels("il", "co net org ac gov")
    + _second_levels("pl", "com net org edu gov")
    + _second_levels("ua", "com net org edu gov")
    + _second_levels("vn", "com net org edu gov")
    + _second_levels("ph", "com net org edu gov")
    + _second_levels("eg", "com net org edu gov")
    + _second_levels("ng", "com net org edu gov")
    + _second_levels("ke", "co or ac go")
    + """
    github.io gitlab.io bitbucket.io githubpreview.dev
    herokuapp.com vercel.app now.sh netlify.app pages.dev workers.dev r2.dev fly.dev onrender.com
    web.app firebaseapp.com appspot.com run.app cloudfunctions.net blogspot.com
    azurewebsites.net azureedge.net cloudapp.net trafficmanager.net core.windows.net blob.core.windows.net
    cloudfront.net s3.amazonaws.com elasticbeanstalk.com awsapprunner.com amplifyapp.com
    repl.co replit.app replit.dev glitch.me surge.sh deno.dev railway.app up.railway.app streamlit.app hf.space
    ngrok.io ngrok.app ngrok-free.app ngrok.dev loca.lt trycloudflare.com serveo.net localhost.run
    duckdns.org no-ip.org ddns.net dyndns.org nip.io sslip.io xip.io
    wordpress.com weebly.com wixsite.com squarespace.com myshopify.com tumblr.com
    """.split()  # noqa: SIM905 (a literal would take a line a name)
)


def is_shared(name: str) -> bool:
    """Whether a wildcard over *name* would cover names that belong to unrelated people."""
    return "." not in name or name in SHARED
