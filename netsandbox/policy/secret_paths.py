"""Paths of keys, tokens, passwords, histories and mail, relative to the home directory: one list for both systems.

A session reads them only with `--allow-read` (docs/configuration.md, Files). The module is on the path to exec, so it
looks nothing up.
"""

from __future__ import annotations


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


EVERYWHERE = _names(
    ".1password .android .aws .azure .bash_history .bitcoin .boto .bunfig.toml .cache/huggingface/stored_tokens"
    " .cache/huggingface/token .cargo/credentials .cargo/credentials.toml .composer/auth.json .config/1Password"
    " .config/composer/auth.json .config/configstore .config/containers/auth.json .config/doctl .config/fly"
    " .config/gcloud .config/gh .config/git/credentials .config/glab-cli .config/hub .config/kaggle .config/netlify"
    " .config/op .config/pnpm/rc .config/pypoetry/auth.toml .config/rclone .config/sops .config/stripe .docker"
    " .electrum .ethereum .fly .gcp .gem/credentials .git-credentials .gnupg .gradle/gradle.properties .heroku"
    " .hex/hex.config .histfile .history .huggingface .irb_history .ivy2/.credentials .julia/logs .kaggle .kube"
    " .lesshst .local/share/atuin .local/share/fish/fish_history .local/share/uv/credentials .m2/settings-security.xml"
    " .m2/settings.xml .minikube .mysql_history .netrc .node_repl_history .npmrc .nuget/NuGet/NuGet.Config .oci"
    " .password-store .pgpass .psql_history .pub-cache/credentials.json .pulumi .pypirc .python_history .railway"
    " .rediscli_history .s3cfg .sbt/.credentials .sh_history .sqlite_history .ssh .supabase .terraform.d .terraformrc"
    " .vault-token .viminfo .wrangler .yarnrc.yml .zsh_history .zsh_sessions _netrc"
)
_LINUX = _names(
    ".ICEauthority .Xauthority .config/.wrangler .config/BraveSoftware .config/Bitwarden .config/Element"
    " .config/Exodus .config/Signal .config/Slack .config/chromium .config/dart/pub-credentials.json .config/discord"
    " .config/evolution .config/google-chrome .config/google-chrome-beta .config/keepassxc .config/microsoft-edge"
    " .config/opera .config/pulse/cookie .config/vivaldi .floorp .librewolf .local/share/com.vercel.cli"
    " .local/share/evolution .local/share/gnome-keyring .local/share/jupyter/runtime .local/share/keyrings"
    " .local/share/kwalletd .mozilla .pki .thunderbird .var/app/com.brave.Browser .var/app/com.google.Chrome"
    " .var/app/org.chromium.Chromium .var/app/org.mozilla.Thunderbird .var/app/org.mozilla.firefox .zen snap/brave"
    " snap/chromium snap/firefox snap/thunderbird"
)
_MAC = _names(
    "Library/Accounts Library/Calendars Library/Containers Library/Cookies Library/Ethereum Library/HTTPStorages"
    " Library/IdentityServices Library/Jupyter/runtime Library/Keychains Library/Mail Library/Messages"
    " Library/Preferences/.wrangler Library/Preferences/netlify Library/Preferences/pnpm Library/Safari"
    " Library/Thunderbird Library/WebKit"
)
_MAC_SPACED = (
    "Library/Application Support/1Password",
    "Library/Application Support/AddressBook",
    "Library/Application Support/Arc",
    "Library/Application Support/Bitcoin",
    "Library/Application Support/Bitwarden",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/CallHistoryDB",
    "Library/Application Support/Chromium",
    "Library/Application Support/Electrum",
    "Library/Application Support/Exodus",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google",
    "Library/Application Support/LibreWolf",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/MobileSync",
    "Library/Application Support/Signal",
    "Library/Application Support/Slack",
    "Library/Application Support/Vivaldi",
    "Library/Application Support/com.apple.TCC",
    "Library/Application Support/com.operasoftware.Opera",
    "Library/Application Support/com.vercel.cli",
    "Library/Application Support/dart/pub-credentials.json",
    "Library/Application Support/discord",
    "Library/Application Support/pypoetry/auth.toml",
    "Library/Application Support/zen",
    "Library/Group Containers",
)

OF_LINUX = (*EVERYWHERE, *_LINUX)
OF_MAC = (*EVERYWHERE, *_MAC, *_MAC_SPACED)
LINUX_SYSTEM = ("/run/secrets",)  # container runtimes put the cluster's tokens and passwords there
# /System/Volumes/Data is a second name of the whole disk, which no rule for the first name would match.
MAC_SYSTEM = ("/Library/Keychains", "/System/Volumes/Data", "/private/etc/master.passwd", "/private/var/db/dslocal")
