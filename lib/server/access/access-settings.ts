import { AppError } from '@interlude/protocol/errors';
import type { Role } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { isHttpUrl } from '@interlude/protocol/text';
import { type ProxyTrust, proxyTrust } from './client-address';
import { isGuessable } from './secret-strength.mjs';

const MIN_TOKEN_LENGTH = 16;

const HOUR_MS = 3_600_000;
const IDLE_HOURS = 7 * 24;
const SESSION_HOURS = 12;
/** Default absolute lifetime of a member's sign-in. */
export const MEMBER_SESSION_MS = SESSION_HOURS * HOUR_MS;
/** Absolute lifetime of a sign-in with this machine's link or token. */
export const LOCAL_SESSION_MS = 30 * 24 * HOUR_MS;

/** Access settings: secrets, accepted host names and trusted proxies. */
export interface AccessSettings {
  /** The owner's token; it grants every permission. */
  token: string;
  /** Host name under `localhost` at which browsers on this machine sign in; null for none. */
  localName: string | null;
  /** Accepted `Host` names besides loopback: lower case, without port. */
  allowedHosts: readonly string[];
  /** Accepts any IP address as `Host`; true when the server listens on all interfaces. */
  allowAddresses: boolean;
  proxies?: ProxyTrust;
  now: () => number;
  /** Bearer token of the host's cron job (`CRON_SECRET` on Vercel); null for none. */
  cronSecret?: string | null;
  /** Bearer token of the metrics scraper; null for none. */
  metricsToken?: string | null;
}

/**
 * Reads the access settings. Start-up code copies the token file into INTERLUDE_TOKEN.
 *
 * @throws AppError `unavailable` without a token, because the server must not serve requests without one
 */
export function accessSettings(env: Record<string, string | undefined>): AccessSettings {
  const token = env.INTERLUDE_TOKEN?.trim() ?? '';
  if (token.length < MIN_TOKEN_LENGTH) {
    throw new AppError(
      'unavailable',
      `INTERLUDE_TOKEN is ${token === '' ? 'not set' : 'too short'}. Start the dashboard with "npm start", or set INTERLUDE_TOKEN to at least ${MIN_TOKEN_LENGTH} characters.`,
    );
  }
  const host = (env.HOST ?? '').trim().toLowerCase();
  const everywhere = host === '0.0.0.0' || host === '::' || host === '[::]';
  const named = (env.INTERLUDE_ALLOWED_HOSTS ?? '').split(',').map((name) => hostSetting(name.trim().toLowerCase()));
  return {
    token,
    localName: localName(env.INTERLUDE_LOCAL_NAME ?? ''),
    allowedHosts: [...named, everywhere ? '' : host, publicHost(env.INTERLUDE_PUBLIC_URL), ...vercelHosts(env)].filter(
      (name) => name !== '',
    ),
    allowAddresses: everywhere,
    proxies: proxyTrust(env),
    now: Date.now,
    cronSecret: secretSetting(env.INTERLUDE_CRON_SECRET || env.CRON_SECRET, 'INTERLUDE_CRON_SECRET (or CRON_SECRET)'),
    metricsToken: secretSetting(env.INTERLUDE_METRICS_TOKEN, 'INTERLUDE_METRICS_TOKEN'),
  };
}

/** @throws AppError `unavailable` if the secret is too short */
function secretSetting(setting = '', name: string): string | null {
  const secret = setting.trim();
  if (secret === '') return null;
  if (secret.length >= MIN_TOKEN_LENGTH) return secret;
  throw new AppError('unavailable', `${name} is too short. Set it to at least ${MIN_TOKEN_LENGTH} characters.`);
}

const CHOSEN_SECRETS = ['INTERLUDE_TOKEN', 'INTERLUDE_CRON_SECRET', 'CRON_SECRET', 'INTERLUDE_METRICS_TOKEN'];

/** Returns a one-line warning for each guessable secret in the environment. */
export function guessableSecrets(env: Record<string, string | undefined>): string[] {
  return CHOSEN_SECRETS.filter((name) => env[name] && isGuessable(env[name].trim())).map(
    (name) => `${name} is easy to guess. Set it to the output of "openssl rand -base64 32" and restart.`,
  );
}

/** @throws AppError `unavailable` for text that never equals a host name */
function hostSetting(name: string): string {
  // an IPv6 address is the only name with colons
  if (!/[\s/@*?]/.test(name) && (!name.includes(':') || URL.canParse(`http://[${withoutBrackets(name)}]`))) {
    return name;
  }
  throw new AppError(
    'unavailable',
    `INTERLUDE_ALLOWED_HOSTS contains ${JSON.stringify(name)}. Use host names such as console.example.com, without scheme or port, separated by commas.`,
  );
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/** @throws AppError `unavailable` if the text is not an http or https URL */
/** `INTERLUDE_PUBLIC_URL` without credentials and without a slash at the end; null if it is not set. */
export function publicUrl(env: Record<string, string | undefined>): string | null {
  const address = env.INTERLUDE_PUBLIC_URL?.trim() ?? '';
  if (!isHttpUrl(address)) return null;
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname}`.replace(/\/+$/, '');
}

function publicHost(address = ''): string {
  const trimmed = address.trim();
  if (trimmed === '') return '';
  if (isHttpUrl(trimmed)) return withoutBrackets(new URL(trimmed).hostname);
  throw new AppError(
    'unavailable',
    'INTERLUDE_PUBLIC_URL is not a URL such as https://interlude.example.com. Correct it or remove it.',
  );
}

/**
 * Host names that Vercel assigns to a deployment, its branch and the project. Ignored on other hosts, where the
 * variables prove nothing.
 *
 * @see https://vercel.com/docs/environment-variables/system-environment-variables
 */
function vercelHosts(env: Record<string, string | undefined>): string[] {
  if (env.VERCEL !== '1') return [];
  const { VERCEL_URL = '', VERCEL_BRANCH_URL = '', VERCEL_PROJECT_PRODUCTION_URL = '' } = env;
  return [VERCEL_URL, VERCEL_BRANCH_URL, VERCEL_PROJECT_PRODUCTION_URL].map((name) => name.toLowerCase());
}

function localName(setting: string): string | null {
  const name = setting.trim().toLowerCase();
  if (name === '') return null;
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return `${name}.localhost`;
  throw new AppError(
    'unavailable',
    `INTERLUDE_LOCAL_NAME is ${JSON.stringify(setting)}. Use letters, digits and hyphens (for http://<name>.localhost), or leave it empty.`,
  );
}

/** Idle timeout of a sign-in in milliseconds: 1 hour to 30 days. */
export function sessionIdleMs(env: Record<string, string | undefined>): number {
  return hoursSetting(env, 'INTERLUDE_SESSION_IDLE_HOURS', IDLE_HOURS, 'sign-ins expire after a week without use');
}

/** Absolute lifetime of a member's sign-in in milliseconds: 1 hour to 30 days. */
export function sessionMs(env: Record<string, string | undefined>): number {
  return hoursSetting(
    env,
    'INTERLUDE_SESSION_HOURS',
    SESSION_HOURS,
    `members' sign-ins expire after ${SESSION_HOURS} hours`,
  );
}

function hoursSetting(
  env: Record<string, string | undefined>,
  name: string,
  byDefault: number,
  otherwise: string,
): number {
  return numberSetting(env, name, { byDefault, min: 1, max: 30 * 24, otherwise }) * HOUR_MS;
}

const MAY_BE_REDACTED = ['viewer', 'operator'] as const;

/**
 * Roles whose responses are redacted: `INTERLUDE_REDACT_ROLES`.
 *
 * @throws AppError `unavailable` for an unknown role, because ignoring a misspelt one would show it every secret
 */
export function redactedRoles(env: Record<string, string | undefined>): Role[] {
  const named = (env.INTERLUDE_REDACT_ROLES ?? '').split(',').map((name) => name.trim().toLowerCase());
  return named
    .filter((name) => name !== '')
    .map((name) => {
      const role = MAY_BE_REDACTED.find((known) => known === name);
      if (role !== undefined) return role;
      throw new AppError(
        'unavailable',
        `INTERLUDE_REDACT_ROLES contains ${JSON.stringify(name)}. Use viewer, operator or both, separated by a comma; admins see everything.`,
      );
    });
}

/**
 * Reads a positive number from the environment. Logs and ignores an invalid value.
 *
 * @param isWhole accepts integers only
 * @param min minimum; any positive number if omitted
 * @param otherwise effect of the default, for the log line
 */
export function numberSetting<Default extends number | null>(
  env: Record<string, string | undefined>,
  name: string,
  {
    byDefault,
    isWhole = false,
    min = 0,
    max = Number.MAX_VALUE,
    otherwise,
  }: { byDefault: Default; isWhole?: boolean; min?: number; max?: number; otherwise: string },
): number | Default {
  const text = env[name];
  if (text === undefined || text === '') return byDefault;
  const value = Number(text);
  const isKind = !isWhole || Number.isInteger(value);
  if (isKind && value > 0 && value >= min && value <= max) return value;
  const bound = max === Number.MAX_VALUE ? '' : ` and up to ${max}`;
  serverLog(
    'warn',
    `${name}=${text} is not a ${isWhole ? 'whole ' : ''}number ${min > 0 ? `from ${min}` : 'above 0'}${bound}; ${otherwise}. Correct it or remove it.`,
  );
  return byDefault;
}

/** Reads one of several words from the environment, ignoring case. Logs and ignores other values. */
export function choiceSetting<Choice extends string>(
  env: Record<string, string | undefined>,
  name: string,
  { choices, byDefault }: { choices: readonly Choice[]; byDefault: NoInfer<Choice> },
): Choice {
  const text = env[name]?.trim().toLowerCase() ?? '';
  if (text === '') return byDefault;
  const choice = choices.find((one) => one === text);
  if (choice !== undefined) return choice;
  serverLog(
    'warn',
    `${name}=${text} is not one of ${choices.join(', ')}; using ${byDefault}. Correct it or remove it.`,
  );
  return byDefault;
}
