"""Well-known names that rules treat specially. Neither list can be complete.

- `SHARED_SUFFIXES`: names under which strangers register names of their own. A wildcard over one of them would allow
  everybody. A wildcard must stand over two labels, which keeps out `*.com`; the list keeps out the common suffixes of
  two and three labels, country registries first and shared hosting after.
- `RESOLVERS`: public resolvers that speak DNS over HTTPS, TLS or QUIC. A command that reaches one looks up any name
  without the session's resolver, so they are denied in every mode, and no allow rule lifts that. A name stands for
  itself and everything below it. An unknown resolver still needs an allow rule (or online mode) to be reached.
"""

from __future__ import annotations

from netsandbox.policy.ip import embedded4, parse4, parse6

TYPE_CHECKING = False
if TYPE_CHECKING:
    from netsandbox.policy.ip import Address

DNS_OVER_TLS_PORT = 853


def _second_levels(country: str, labels: str) -> list[str]:
    return [f"{label}.{country}" for label in labels.split()]


SHARED_SUFFIXES = frozenset(
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
RESOLVERS = frozenset(
    """
    dns.google dns.google.com 8888.google google-public-dns-a.google.com google-public-dns-b.google.com
    cloudflare-dns.com cloudflare-gateway.com one.one.one.one 1dot1dot1dot1.com
    dns.quad9.net dns9.quad9.net dns10.quad9.net dns11.quad9.net dns12.quad9.net
    dns.opendns.com doh.opendns.com doh.familyshield.opendns.com doh.sandbox.opendns.com
    dns.umbrella.com doh.umbrella.com
    dns.adguard.com dns-family.adguard.com dns-unfiltered.adguard.com adguard-dns.com
    doh.cleanbrowsing.org family-filter-dns.cleanbrowsing.org adult-filter-dns.cleanbrowsing.org
    security-filter-dns.cleanbrowsing.org
    dns.nextdns.io dns1.nextdns.io dns2.nextdns.io anycast.dns.nextdns.io
    dns.controld.com freedns.controld.com
    dns.mullvad.net doh.mullvad.net adblock.doh.mullvad.net
    dns.alidns.com doh.pub dot.pub doh.360.cn dot.360.cn dns.twnic.tw
    doh.dns.sb dot.sb doh.sb doh.libredns.gr dot.libredns.gr doh.ffmuc.net dot.ffmuc.net
    dns.digitale-gesellschaft.ch doh.applied-privacy.net dot1.applied-privacy.net
    doh.tiar.app doh.tiarap.org jp.tiar.app dns.switch.ch odvr.nic.cz
    dns0.eu joindns4.eu dnsforge.de wikimedia-dns.org dns.njal.la
    doh.powerdns.org doh.xfinity.com dot.xfinity.com ordns.he.net canadianshield.cira.ca
    pi-dns.com ahadns.net blitz.ahadns.com dns.aa.net.uk rdns.faelix.net doh.crypto.sx dns.decloudus.com
    basic.rethinkdns.com sky.rethinkdns.com max.rethinkdns.com
    doh.dns.apple.com doh.seby.io doh.securedns.eu dns.rubyfish.cn doh.appliedprivacy.net
    use-application-dns.net
    """.split()  # noqa: SIM905 (a literal would take a line a name)
)
_ADDRESSES4 = """
    8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 1.1.1.2 1.0.0.2 1.1.1.3 1.0.0.3 9.9.9.9 9.9.9.10 9.9.9.11 149.112.112.112
    208.67.222.222 208.67.220.220 94.140.14.14 94.140.15.15 223.5.5.5 223.6.6.6 1.12.12.12 120.53.53.53
    """
_ADDRESSES6 = """
    2001:4860:4860::8888 2001:4860:4860::8844 2606:4700:4700::1111 2606:4700:4700::1001 2620:fe::fe 2620:fe::9
    """
_VALUES = {4: frozenset(map(parse4, _ADDRESSES4.split())), 6: frozenset(map(parse6, _ADDRESSES6.split()))}


def is_shared_suffix(name: str) -> bool:
    """Whether a wildcard over *name* would cover names that belong to unrelated people."""
    return "." not in name or name in SHARED_SUFFIXES


def is_resolver(name: str) -> bool:
    """Whether the canonical *name* is, or lies below, a known public resolver."""
    start = 0
    while (dot := name.find(".", start)) >= 0:  # no resolver's name is a single label
        if name[start:] in RESOLVERS:
            return True
        start = dot + 1
    return False


def is_resolver_address(address: Address) -> bool:
    """Whether *address* belongs to a known public resolver, or leads to one through a translator (NAT64, 6to4)."""
    if address.version == 6 and any(value in _VALUES[4] for value in embedded4(address.value)):
        return True
    return address.value in _VALUES[address.version]
