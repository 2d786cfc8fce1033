"""Made-up secrets of every shape that a capture has to leave out.

They are put together here, so that nothing in this file looks like a secret itself.
"""

import base64
import json
import random
import string

WORD = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits


def chars(count: int, of: str = WORD, seed: int = 7) -> str:
    return "".join(random.Random(seed + count).choices(of, k=count))


def jwt() -> str:
    part = base64.urlsafe_b64encode(json.dumps({"alg": "HS256"}).encode()).decode().rstrip("=")
    return f"{part}.{part}.{chars(43)}"


SECRETS = {
    "anthropic": "sk-ant-" + "api03-" + chars(90),
    "openai": "sk-" + chars(48),
    "openai project": "sk-" + "proj-" + chars(120),
    "openai service": "sk-" + "svcacct-" + chars(80),
    "openrouter": "sk-" + "or-v1-" + chars(64, HEX),
    "google": "AI" + "za" + chars(35),
    "google oauth": "ya" + "29." + chars(60),
    "google client": "GOC" + "SPX-" + chars(28),
    "aws": "AK" + "IA" + chars(16, UPPER),
    "aws session": "AS" + "IA" + chars(16, UPPER),
    "github": "gh" + "p_" + chars(36),
    "github oauth": "gh" + "o_" + chars(36),
    "github app": "gh" + "s_" + chars(36),
    "github fine": "github" + "_pat_" + chars(82),
    "gitlab": "gl" + "pat-" + chars(20),
    "slack bot": "xo" + "xb-" + "1234567890-" + chars(24),
    "slack app": "xa" + "pp-" + "1-A1-" + chars(40),
    "stripe": "sk" + "_live_" + chars(24),
    "stripe restricted": "rk" + "_live_" + chars(24),
    "stripe webhook": "wh" + "sec_" + chars(32),
    "sendgrid": "SG" + "." + chars(22) + "." + chars(43),
    "mailgun": "ke" + "y-" + chars(32, HEX),
    "npm": "np" + "m_" + chars(36),
    "pypi": "py" + "pi-" + chars(80),
    "hugging face": "h" + "f_" + chars(34),
    "groq": "gs" + "k_" + chars(52),
    "xai": "xa" + "i-" + chars(80),
    "replicate": "r" + "8_" + chars(37),
    "perplexity": "pp" + "lx-" + chars(48),
    "digitalocean": "do" + "p_v1_" + chars(64, HEX),
    "databricks": "da" + "pi" + chars(32, HEX),
    "linear": "li" + "n_api_" + chars(40),
    "notion": "nt" + "n_" + chars(46),
    "shopify": "sh" + "pat_" + chars(32, HEX),
    "twilio": "S" + "K" + chars(32, HEX),
    "twilio account": "A" + "C" + chars(32, HEX),
    "cloudflare": "cf" + "ut_" + chars(48),
    "supabase": "sb" + "p_" + chars(40, HEX),
    "rubygems": "ruby" + "gems_" + chars(48, HEX),
    "figma": "fig" + "d_" + chars(40),
    "tavily": "tv" + "ly-" + "dev-" + chars(32),
    "elevenlabs": "sk" + "_" + chars(48, HEX),
    "age": "AGE-SECRET" + "-KEY-1" + chars(58, UPPER),
    "square": "sq" + "0atp-" + chars(22),
    "atlassian": "AT" + "ATT3" + chars(80),
    "new relic": "NR" + "AK-" + chars(27, UPPER),
    "sentry": "sn" + "trys_" + chars(60),
    "dropbox": "sl" + "." + chars(130),
    "vault": "hv" + "s." + chars(24),
    "terraform": chars(14) + ".atlas" + "v1." + chars(67),
    "doppler": "dp" + ".pt." + chars(43),
    "postman": "PM" + "AK-" + chars(24, HEX) + "-" + chars(34, HEX),
    "grafana": "gl" + "sa_" + chars(32) + "_" + chars(8, HEX),
    "langsmith": "ls" + "v2_" + "pt_" + chars(32, HEX) + "_" + chars(10, HEX),
    "pinecone": "pc" + "sk_" + chars(64),
    "telegram": "123456789" + ":AA" + chars(33),
    "discord": "MTk4NjIyNDgzNDcxOTI1MjQ4" + "." + chars(6) + "." + chars(38),
    "jwt": jwt(),
}
CONTEXTS = {
    "bearer": ("Bearer ", chars(40), ""),
    "basic": ("Basic ", base64.b64encode(f"user:{chars(20)}".encode()).decode(), ""),
    "userinfo": ("https://", f"user:{chars(16)}", "@db.test/x"),
    "query": ("https://a.test/x?api" + "_key=", chars(24), "&y=1"),
    "azure": ("https://b.test/c?sv=1&s" + "ig=", chars(40) + "%2Fa%3D", "&se=2"),
    "slack webhook": ("https://hooks.slack" + ".com/services/", "T0/B0/" + chars(24), ""),
    "assignment": ("OPENAI_API" + "_KEY=", chars(30), ""),
    "signed": ("https://a.test/x?X-Amz-" + "Signature=", chars(64, HEX), ""),
    "private key": (
        "", "-----BEGIN " + "PRIVATE KEY-----" + chars(200) + "-----END PRIVATE KEY-----", "",
    ),
}  # fmt: skip
NAMED = ("password", "client_secret", "api_key", "apiKey", "access_token", "refresh_token",
         "Authorization", "private_key", "secretAccessKey", "session_token")  # fmt: skip


def heart(secret: str) -> str:
    """Return what may nowhere be left of a secret: the part of it that is random."""
    return secret.rpartition(".")[2] if secret.startswith("MT") else secret


PLANTED = [
    *[(name, secret, heart(secret)) for name, secret in SECRETS.items()],
    *[(name, a + secret + b, secret) for name, (a, secret, b) in CONTEXTS.items()],
]
