"""Proves a statement of usage with exported records, without Spangate: docs/statements.md. Needs Python 3.10 and nothing else.
usage: python3 verify_statement.py STATEMENT.json PUBLIC_KEY RECORDS.jsonl ...     PUBLIC_KEY: of the seller, in base64"""
import base64, bisect, collections, hashlib, json, struct, sys

# Ed25519 (RFC 8032). It only verifies, so nothing here is secret.
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
def add(p, q):
    product = D * p[0] * q[0] * p[1] * q[1]
    return ((p[0] * q[1] + p[1] * q[0]) * pow(1 + product, -1, P) % P,
            (p[1] * q[1] + p[0] * q[0]) * pow(1 - product, -1, P) % P)
def times(number, p):
    return (0, 1) if number == 0 else add(times(number - 1, p), p) if number % 2 else times(number // 2, add(p, p))
def point(data):
    y, sign = int.from_bytes(data, "little") % 2**255, data[31] >> 7
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    if len(data) != 32 or y >= P or x * x % P != square or (x == 0 and sign):
        raise ValueError("no point of the curve")
    return (x if x % 2 == sign else P - x), y
def is_signed(key, message, signature):
    h, s = hashlib.sha512(signature[:32] + key + message).digest(), int.from_bytes(signature[32:], "little")
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    return s < ORDER and times(s, base) == add(point(signature[:32]), times(int.from_bytes(h, "little") % ORDER, point(key)))

# The digest of a record: docs/internals/ledger-form.md.
def varint(n):
    return bytes([n]) if n < 128 else bytes([n % 128 + 128]) + varint(n // 128)
def field(tag, content):
    return bytes([tag]) + varint(len(content)) + content
def any_value(value):
    [(kind, plain)] = value.items()
    return {"stringValue": lambda: field(0x0A, plain.encode()), "boolValue": lambda: bytes([0x10, plain]),
            "intValue": lambda: b"\x18" + varint(int(plain) % 2**64), "doubleValue": lambda: b"\x21" + struct.pack("<d", plain),
            "arrayValue": lambda: field(0x2A, b"".join(field(0x0A, any_value(v)) for v in plain.get("values", [])))}[kind]()
def digest(values):
    encoded = sorted((key.encode(), field(0x12, any_value(value))) for key, value in values.items())
    return hashlib.sha256(b"".join(field(0x4A, field(0x0A, key) + value) for key, value in encoded)).digest()[:16]

stated, findings, listed, seen = json.load(open(sys.argv[1], encoding="utf-8")), collections.defaultdict(list), {}, set()
signed = json.dumps({k: v for k, v in stated.items() if k != "signature"}, sort_keys=True, separators=(",", ":")).encode()
key, signature = base64.b64decode(sys.argv[2]), base64.b64decode(stated.get("signature", ""))
if stated.get("public_key") != sys.argv[2] or len(signature) != 64 or not is_signed(key, signed, signature):
    findings["signature wrong, or of another key"].append(())
for part in stated["records"]:
    numbers = [n for text in part["numbers"] for n in range(int(text.split("-")[0]), int(text.split("-")[-1]) + 1)]
    digests = base64.b64decode(part["digests"])
    listed.update({(part["instance"], n): digests[16 * i:16 * i + 16] for i, n in enumerate(numbers)})
TOKENS = ["prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"]
found, starts = collections.defaultdict(collections.Counter), [day["since"] for day in stated["days"]]
for line in (line for name in sys.argv[3:] for line in open(name, encoding="utf-8")):
    for span in (span for r in json.loads(line)["resourceSpans"] for s in r["scopeSpans"] for span in s["spans"]):
        values = {a["key"]: a["value"] for a in span.get("attributes", []) if a["key"].startswith("gateway.")}
        if "gateway.seq" not in values:
            continue
        record = {name[8:]: next(iter(value.values())) for name, value in values.items()}
        key, own = (record["instance"], int(record["seq"])), record.get("tenant") == stated["tenant"]
        inside = stated["since"] <= record["ts"] < stated["until"]
        checks = {"doubled": key in seen, "changed": digest(values) != listed[key], "of somebody else": not own,
                  "not of this month": not inside} if key in listed else {"not in the statement": own and inside}
        seen.add(key)
        for problem in (problem for problem, is_so in checks.items() if is_so):
            findings[problem].append(key)
        if key in listed and not any(checks.values()):
            sums = {"requests": 1, **{name: int(record.get(name, 0)) for name in TOKENS}}
            sums["gpu_seconds"] = int(record.get("gpu_seconds", 0) * 1e9 + 0.5)
            sums["cost " + record.get("currency", "")] = int(record.get("cost", 0) * 1e12 + 0.5)
            found[stated["days"][bisect.bisect(starts, record["ts"]) - 1]["day"], record.get("model")].update(sums)
            found["total", None].update(sums)
findings["missing"] = sorted(listed.keys() - seen)
for row in [{**stated["total"], "day": "total", "model": None}, *stated["rows"]] if not any(findings.values()) else []:
    units = {**row, **{"cost " + name: cost for name, cost in row["costs"].items()}}
    sums = {name: int(str(value).replace(".", "")) for name, value in units.items() if name not in ("day", "model", "costs")}
    if collections.Counter(sums) != found.pop((row["day"], row["model"]), collections.Counter()):
        findings["sums differ"].append((row["day"], row["model"]))
findings["sums differ"].extend(() if any(findings.values()) else found)
lines = [" ".join(map(str, (problem, *place))) for problem, places in findings.items() for place in places]
print(*lines, "Not proven." if lines else "Proven.", sep="\n")
sys.exit(bool(lines))
