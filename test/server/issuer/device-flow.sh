#!/bin/sh
# The device flow (RFC 8628) by plain curl, as a person at a terminal with a browser beside it would do it.
# URL: the issuer. BRIEF_URL: one whose codes live a second. ACCOUNT, PASSWORD: who approves. JAR: a file for cookies.
set -eu

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
hidden() { sed -n "s/.*name=\"$1\" value=\"\([^\"]*\)\".*/\1/p" | head -n 1; }
begin() { curl -sS "$1/device/code" -d client_id=ailsd-cli --data-urlencode 'scope=openid email profile read:sandbox write:sandbox exec:sandbox'; }
poll() { curl -sS "$1/token" -d client_id=ailsd-cli -d grant_type=urn:ietf:params:oauth:grant-type:device_code -d "device_code=$2"; }
browse() { curl -sS -b "$JAR" -c "$JAR" "$@"; }

# The person signs in.
page=$(browse "$URL/sign-in")
browse -o /dev/null "$URL/sign-in" -d "xsrf=$(echo "$page" | hidden xsrf)" -d "login=$ACCOUNT" --data-urlencode "password=$PASSWORD"

decide() { # user_code decision
  page=$(browse "$URL/device?user_code=$1")
  browse -o /dev/null "$URL/device" -d "xsrf=$(echo "$page" | hidden xsrf)" -d "user_code=$1" -d "decision=$2" -d scope=read:sandbox
}

# Nobody has decided; then asked again too soon.
begun=$(begin "$URL")
echo "$(poll "$URL" "$(echo "$begun" | field device_code)" | field error)"
echo "$(poll "$URL" "$(echo "$begun" | field device_code)" | field error)"

# Denied.
begun=$(begin "$URL")
decide "$(echo "$begun" | field user_code)" deny
echo "$(poll "$URL" "$(echo "$begun" | field device_code)" | field error)"

# Run out.
begun=$(begin "$BRIEF_URL")
until [ "${error:-}" = expired_token ]; do
  error=$(poll "$BRIEF_URL" "$(echo "$begun" | field device_code)" | field error)
done
echo "$error"

# Approved.
begun=$(begin "$URL")
decide "$(echo "$begun" | field user_code)" approve
tokens=$(poll "$URL" "$(echo "$begun" | field device_code)")
echo "token $(echo "$tokens" | field token_type) $(echo "$tokens" | field expires_in)"
echo "sub $(curl -sS "$URL/userinfo" -H "Authorization: Bearer $(echo "$tokens" | field access_token)" | field sub)"

# Refreshed, asked about, revoked, asked about again.
tokens=$(curl -sS "$URL/token" -d client_id=ailsd-cli -d grant_type=refresh_token -d "refresh_token=$(echo "$tokens" | field refresh_token)")
echo "refreshed $(echo "$tokens" | field token_type) $(echo "$tokens" | field expires_in)"
about() { curl -sS "$URL/introspect" -d client_id=ailsd-cli -d "token=$(echo "$tokens" | field access_token)" | field active; }
echo "active $(about)"
echo "revoked $(curl -sS -o /dev/null -w '%{http_code}' "$URL/revoke" -d client_id=ailsd-cli -d "token=$(echo "$tokens" | field refresh_token)")"
echo "active $(about)"
