"""The configuration of a session's network namespace, encoded with pyroute2.

This is the source of the messages in `backends/namespaces/plan.py`. pyroute2 takes 150 ms to import and the messages
never change, so they are encoded once (`python -m scripts.nft_rules`) and the helper replays the bytes. A test encodes
them again and compares.

The rules: every address is local, so there is no route out. Port 53 goes to the resolver's sockets, and packets from
port 53 to the client. Loopback belongs to the workload. Every other TCP connection or UDP datagram goes to a
transparent door. Only the resolver sends from port 53, because the workload may not bind a port below 1024.
"""

from __future__ import annotations

import sys
from typing import Any

from netsandbox_portmap import DATAGRAM_PORT, DNS_PORT, TRANSPARENT_PORT
from pyroute2.netlink import NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST
from pyroute2.netlink.nfnetlink import nfgen_msg
from pyroute2.netlink.nfnetlink.nftsocket import (
    NFT_MSG_NEWCHAIN,
    NFT_MSG_NEWRULE,
    NFT_MSG_NEWTABLE,
    nft_chain_msg,
    nft_rule_msg,
    nft_table_msg,
)
from pyroute2.netlink.rtnl import RTM_NEWLINK, RTM_NEWROUTE
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.rtmsg import rtmsg

AF_INET, AF_INET6 = 2, 10
NFPROTO_INET = 1
NFNL_SUBSYS_NFTABLES = 10
NFNL_MSG_BATCH_BEGIN, NFNL_MSG_BATCH_END = 16, 17
META_NFPROTO, META_L4PROTO = 15, 16
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
ACCEPT = 1
PRIORITY_MANGLE = -150
LO, TABLE_LOCAL, SCOPE_HOST, TYPE_LOCAL, PROTOCOL_STATIC, IFF_UP = 1, 255, 254, 2, 4, 1
TABLE, CHAIN = "netsandbox", "capture"

Expression = dict[str, Any]


def _encoded(message: Any, kind: int, flags: int, sequence: int) -> bytes:
    message["header"] = {"type": kind, "flags": NLM_F_REQUEST | flags, "sequence_number": sequence, "pid": 0}
    message.encode()
    return bytes(message.data)


def route_messages() -> list[bytes]:
    """Loopback up, and every IPv4 and IPv6 address local to it."""
    up = ifinfmsg()
    up["index"], up["flags"], up["change"] = LO, IFF_UP, IFF_UP
    messages = [_encoded(up, RTM_NEWLINK, NLM_F_ACK, 1)]
    for sequence, family in enumerate((AF_INET, AF_INET6), start=2):
        route = rtmsg()
        route["family"], route["table"], route["type"] = family, TABLE_LOCAL, TYPE_LOCAL
        route["scope"], route["proto"] = SCOPE_HOST, PROTOCOL_STATIC
        route["attrs"] = [("RTA_OIF", LO)]
        messages.append(_encoded(route, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, sequence))
    return messages


def _expression(name: str, **fields: Any) -> Expression:
    data = {"attrs": [(f"NFTA_{name.upper()}_{field.upper()}", value) for field, value in fields.items()]}
    return {"attrs": [("NFTA_EXPR_NAME", name), ("NFTA_EXPR_DATA", data)]}


def _value(data: bytes) -> dict[str, Any]:
    return {"attrs": [("NFTA_DATA_VALUE", data)]}


def _equals(data: bytes) -> Expression:
    return _expression("cmp", sreg=1, op=0, data=_value(data))


def _meta_is(key: int, data: bytes) -> list[Expression]:
    return [_expression("meta", key=key, dreg=1), _equals(data)]


def _payload_is(base: int, offset: int, data: bytes) -> list[Expression]:
    return [_expression("payload", dreg=1, base=base, offset=offset, len=len(data)), _equals(data)]


def _accept() -> list[Expression]:
    verdict = {"attrs": [("NFTA_DATA_VERDICT", {"attrs": [("NFTA_VERDICT_CODE", ACCEPT)]})]}
    return [_expression("immediate", dreg=0, data=verdict)]


def _to_door(port: int) -> list[Expression]:
    load = _expression("immediate", dreg=1, data=_value(port.to_bytes(2, "big")))
    return [load, _expression("tproxy", family=0, reg_port=1)]


def rules() -> list[list[Expression]]:
    """The chain, first match first."""
    dns = DNS_PORT.to_bytes(2, "big")
    return [
        _payload_is(TRANSPORT_HEADER, 2, dns) + _accept(),
        _payload_is(TRANSPORT_HEADER, 0, dns) + _accept(),  # replies, from the address of the query
        _meta_is(META_NFPROTO, bytes([AF_INET])) + _payload_is(NETWORK_HEADER, 16, b"\x7f") + _accept(),
        _meta_is(META_NFPROTO, bytes([AF_INET6])) + _payload_is(NETWORK_HEADER, 24, bytes(15) + b"\x01") + _accept(),
        _meta_is(META_L4PROTO, b"\x06") + _to_door(TRANSPARENT_PORT),
        _meta_is(META_L4PROTO, b"\x11") + _to_door(DATAGRAM_PORT),
    ]


def _filter_message(message: Any, kind: int, sequence: int, attributes: list[tuple[str, Any]]) -> bytes:
    message["nfgen_family"] = NFPROTO_INET
    message["attrs"] = attributes
    return _encoded(message, NFNL_SUBSYS_NFTABLES << 8 | kind, NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND, sequence)


def _batch_mark(kind: int, sequence: int) -> bytes:
    mark = nfgen_msg()
    mark["res_id"] = NFNL_SUBSYS_NFTABLES << 8  # network byte order
    return _encoded(mark, kind, 0, sequence)


def filter_batch() -> list[bytes]:
    """One nfnetlink batch: table, chain and rules, all or nothing."""
    hook = {"attrs": [("NFTA_HOOK_HOOKNUM", 0), ("NFTA_HOOK_PRIORITY", PRIORITY_MANGLE)]}
    chain: list[tuple[str, Any]] = [("NFTA_CHAIN_TABLE", TABLE), ("NFTA_CHAIN_NAME", CHAIN), ("NFTA_CHAIN_HOOK", hook)]
    chain += [("NFTA_CHAIN_POLICY", ACCEPT), ("NFTA_CHAIN_TYPE", "filter")]
    messages = [
        _batch_mark(NFNL_MSG_BATCH_BEGIN, 1),
        _filter_message(nft_table_msg(), NFT_MSG_NEWTABLE, 2, [("NFTA_TABLE_NAME", TABLE)]),
        _filter_message(nft_chain_msg(), NFT_MSG_NEWCHAIN, 3, chain),
    ]
    for sequence, rule in enumerate(rules(), start=4):
        attributes = [("NFTA_RULE_TABLE", TABLE), ("NFTA_RULE_CHAIN", CHAIN), ("NFTA_RULE_EXPRESSIONS", rule)]
        messages.append(_filter_message(nft_rule_msg(), NFT_MSG_NEWRULE, sequence, attributes))
    return [*messages, _batch_mark(NFNL_MSG_BATCH_END, len(messages) + 1)]


def constants() -> str:
    """The constants of `netsandbox/backends/namespaces/plan.py`."""
    lines: list[str] = []
    for name, messages in (("ROUTE", route_messages()), ("FILTER", filter_batch())):
        data = b"".join(messages)
        acknowledged = sum(1 for message in messages if message[6] & NLM_F_ACK)
        lines += [f"{name}_ACKNOWLEDGEMENTS = {acknowledged}", f"{name} = bytes.fromhex("]
        lines += [f'    "{data[start : start + 50].hex()}"' for start in range(0, len(data), 50)]
        lines += [")"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(constants())
