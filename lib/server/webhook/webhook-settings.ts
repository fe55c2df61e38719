import { isBeneath } from '@interlude/protocol/base-path.mjs';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { isHttpUrl } from '@interlude/protocol/text';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';

export interface WebhookSettings {
  /** Without user name and password, which fetch rejects. */
  url: string;
  /** Authorization header with the user name and password; null for none. */
  authorization: string | null;
  /** HMAC key; null: calls are not signed. */
  key: Uint8Array<ArrayBuffer> | null;
  kinds: readonly InboxKind[];
  /** Public URL of this server without trailing slash; null if not configured. */
  publicUrl: string | null;
}

/** The webhook, or the reason why it is disabled. */
type WebhookSetting = { webhook: WebhookSettings; problem: null } | { webhook: null; problem: string | null };

const MIN_SECRET_BYTES = 16;

/** Reads the webhook settings. Logs an invalid value and disables the webhook. */
export function webhookSetting(env: Record<string, string | undefined>): WebhookSetting {
  const address = env.INTERLUDE_WEBHOOK_URL?.trim() ?? '';
  if (address === '') return { webhook: null, problem: null };
  if (!isHttpUrl(address)) return refused('INTERLUDE_WEBHOOK_URL is not an http or https URL.');
  const { url, credentials } = withoutCredentials(address);
  if (credentials === 'bad') {
    return refused('INTERLUDE_WEBHOOK_URL has a user name or password that can’t be decoded. Write each % as %25.');
  }
  const key = keyOf(env.INTERLUDE_WEBHOOK_SECRET?.trim() ?? '');
  if (key === 'bad') {
    return refused(
      `INTERLUDE_WEBHOOK_SECRET must be whsec_ followed by base64, or at least ${MIN_SECRET_BYTES} characters.`,
    );
  }
  const names = (env.INTERLUDE_WEBHOOK_KINDS ?? '').split(',').map((name) => name.trim());
  const wanted = names.filter((name) => name !== '');
  const kinds = INBOX_KINDS.filter((kind) => wanted.length === 0 || wanted.includes(kind));
  const unknown = wanted.find((name) => !(INBOX_KINDS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    return refused(`INTERLUDE_WEBHOOK_KINDS contains ${JSON.stringify(unknown)}. Use: ${INBOX_KINDS.join(', ')}.`);
  }
  const publicUrl = env.INTERLUDE_PUBLIC_URL?.trim().replace(/\/+$/, '') ?? '';
  if (publicUrl !== '' && !isHttpUrl(publicUrl)) return refused('INTERLUDE_PUBLIC_URL is not an http or https URL.');
  if (publicUrl !== '' && withoutCredentials(publicUrl).credentials !== null) {
    return refused('INTERLUDE_PUBLIC_URL contains a user name or password, which would be sent to the webhook.');
  }
  const basePath = env.INTERLUDE_BASE_PATH ?? '';
  if (publicUrl !== '' && !isBeneath(publicUrl, basePath)) {
    return refused(`INTERLUDE_PUBLIC_URL does not end in ${basePath}, the INTERLUDE_BASE_PATH.`);
  }
  const authorization = credentials === null ? null : `Basic ${base64(credentials)}`;
  return { webhook: { url, authorization, key, kinds, publicUrl: publicUrl === '' ? null : publicUrl }, problem: null };
}

/** Extracts `name:password` from a URL. */
function withoutCredentials(address: string): { url: string; credentials: string | 'bad' | null } {
  const url = new URL(address);
  const { username, password } = url;
  if (username === '' && password === '') return { url: address, credentials: null };
  url.username = '';
  url.password = '';
  try {
    return { url: url.href, credentials: `${decodeURIComponent(username)}:${decodeURIComponent(password)}` };
  } catch {
    return { url: url.href, credentials: 'bad' };
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function refused(problem: string): WebhookSetting {
  serverLog('warn', `${problem} The webhook is disabled until you correct it.`);
  return { webhook: null, problem };
}

/** Accepts `whsec_` and base64, as in Standard Webhooks, or any text that is long enough. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> | null | 'bad' {
  if (secret === '') return null;
  if (!secret.startsWith('whsec_')) {
    const bytes = new TextEncoder().encode(secret);
    return bytes.length < MIN_SECRET_BYTES ? 'bad' : bytes;
  }
  try {
    const bytes = Uint8Array.from(atob(secret.slice('whsec_'.length)), (sign) => sign.charCodeAt(0));
    return bytes.length < MIN_SECRET_BYTES ? 'bad' : bytes;
  } catch {
    return 'bad';
  }
}
