# To be sourced with $pip, a pip: uv does not read pip's settings, nor pip uv's, so each gets the index that the other
# is configured for.
pip_says() {  # the environment before the file's [install], that before [global], as pip has it
  local scope value
  for scope in ':env:' install global; do
    value=$($pip config list | sed -nE "s/^$scope\.$1='(.*)'\$/\1/p" | tail -n 1)
    if [ -n "$value" ]; then printf '%s' "${value//\\n/ }"; return; fi
  done
}
uv_file() { cat "${XDG_CONFIG_HOME:-$HOME/.config}/uv/uv.toml" /etc/uv/uv.toml 2>/dev/null || true; }
hand_over() { if [ -z "${!1:-}" ] && [ -n "$2" ]; then export "$1=$2"; fi; }

if [ -z "${UV_INDEX_URL:-}" ] && ! uv_file | grep -qE 'index|default *= *true'; then
  hand_over UV_DEFAULT_INDEX "$(pip_says index-url)"
fi
[ -n "${UV_EXTRA_INDEX_URL:-}" ] || hand_over UV_INDEX "$(pip_says extra-index-url)"
[ -z "$(pip_says index-url)" ] && hand_over PIP_INDEX_URL "${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-}}"
hand_over UV_INSECURE_HOST "$(pip_says trusted-host)"
hand_over SSL_CERT_FILE "$(pip_says cert)"
links=$(pip_says find-links)
if [[ $links == *:* ]] || [ -e "$links" ]; then hand_over UV_FIND_LINKS "${links// /,}"; fi
