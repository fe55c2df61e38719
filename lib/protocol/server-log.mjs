/**
 * The server's own log: lines on stderr from `INTERLUDE_LOG_LEVEL` up, as text or, with `INTERLUDE_LOG_FORMAT=json`, as
 * JSON for a collector. An event is logged once, where it is handled.
 *
 * Lines contain no text of agents or people and no credentials. What an error quotes is redacted.
 *
 * JavaScript, because the launcher logs too. Reads the environment each time, because Next bundles this file more than
 * once.
 *
 * @typedef {'debug' | 'info' | 'warn' | 'error'} ServerLogLevel
 * @typedef {{ error?: unknown, requestId?: string, [field: string]: unknown }} LogFields
 */

import { processState } from './process-state.mjs';

/** @type {readonly ServerLogLevel[]} */
const LEVELS = ['debug', 'info', 'warn', 'error'];

/** Maximum number of causes logged for one error. */
const MAX_CAUSES = 4;

/** Tokens as lib/server/access/secret.ts creates them. */
const SECRET = /\bil([ctse])_[A-Za-z0-9_-]{43}/g;
/** Environment variables that hold secrets. */
const SECRET_SETTINGS = [
  'INTERLUDE_TOKEN',
  'INTERLUDE_DATABASE_AUTH_TOKEN',
  'INTERLUDE_CRON_SECRET',
  'CRON_SECRET',
  'INTERLUDE_METRICS_TOKEN',
  'INTERLUDE_OIDC_CLIENT_SECRET',
  'INTERLUDE_WEBHOOK_SECRET',
];
/** A token in the address of a libSQL server. */
const IN_ADDRESS = /\b(authToken=)[^&\s"'<>]+/gi;
/** Shorter values may be part of any word. */
const MIN_SECRET_LENGTH = 8;

/**
 * Sets the redaction of all further log text. Until then, only the launcher logs, without text of agents or people.
 *
 * @param {(text: string) => string} redact
 */
export function redactServerLog(redact) {
  processState().redactLog = redact;
}

/**
 * @param {ServerLogLevel} level
 * @param {string} message a sentence for the operator
 * @param {LogFields} [fields] further fields for JSON; `error` and `requestId` appear in both formats
 */
export function serverLog(level, message, fields = {}) {
  const env = settings();
  if (LEVELS.indexOf(level) < lowest(env)) return;
  if (env.INTERLUDE_LOG_FORMAT?.trim().toLowerCase() === 'json') {
    console.error(line(level, message, fields, env));
    return;
  }
  const request = fields.requestId ? ` (request ${fields.requestId})` : '';
  const error = fields.error === undefined ? '' : ` ${errorText(fields.error, MAX_CAUSES)}`;
  console.error(withoutSecrets(`[interlude] ${message}${request}${error}`, env));
}

/** True if the level is logged, to skip costly messages. @param {ServerLogLevel} level */
export function isLogged(level) {
  return LEVELS.indexOf(level) >= lowest(settings());
}

/** @returns {Record<string, string | undefined>} */
function settings() {
  return globalThis.process?.env ?? {};
}

/** @param {Record<string, string | undefined>} env */
function lowest({ INTERLUDE_LOG_LEVEL = 'info' }) {
  // `fatal` is a level of runners, which may share the variable
  const named = INTERLUDE_LOG_LEVEL.trim().toLowerCase().replace('fatal', 'error');
  const index = LEVELS.indexOf(/** @type {ServerLogLevel} */ (named));
  return index === -1 ? LEVELS.indexOf('info') : index;
}

/**
 * @param {ServerLogLevel} level
 * @param {string} message
 * @param {LogFields} fields
 * @param {Record<string, string | undefined>} env
 */
function line(level, message, { error, ...fields }, env) {
  const described = error === undefined ? {} : { error: errorFields(error, MAX_CAUSES) };
  const time = new Date().toISOString();
  // Only in the text format, an error follows a colon.
  const all = { time, level, message: message.replace(/:?\s*$/, ''), ...fields, ...described };
  return JSON.stringify(all, (_, value) => (typeof value === 'string' ? withoutSecrets(value, env) : value));
}

/**
 * @param {unknown} error
 * @param {number} causes
 * @returns {Record<string, unknown> | string}
 */
function errorFields(error, causes) {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const because = cause === undefined || causes <= 1 ? {} : { cause: errorFields(cause, causes - 1) };
  return { name, message, ...code, stack, ...because };
}

/**
 * Stack and causes, as a console shows them.
 *
 * @param {unknown} error
 * @param {number} causes
 * @returns {string}
 */
function errorText(error, causes) {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack = '', cause } = error;
  // Some engines omit the message from the stack.
  const text = stack.includes(message) ? stack : `${name}: ${message}\n${stack}`;
  const code = 'code' in error && typeof error.code === 'string' ? `\n    code: ${error.code}` : '';
  const because = cause === undefined || causes <= 1 ? '' : `\n  cause: ${errorText(cause, causes - 1)}`;
  return `${text}${code}${because}`;
}

/**
 * @param {string} text
 * @param {Record<string, string | undefined>} env
 */
function withoutSecrets(text, env) {
  let safe = text.includes('il') ? text.replace(SECRET, 'il$1_…') : text;
  for (const name of SECRET_SETTINGS) {
    const secret = env[name]?.trim() ?? '';
    if (secret.length >= MIN_SECRET_LENGTH && safe.includes(secret)) safe = safe.replaceAll(secret, `(${name})`);
  }
  if (safe.includes('uth')) safe = safe.replace(IN_ADDRESS, '$1…');
  return processState().redactLog?.(safe) ?? safe;
}
