/**
 * The server's own log: one line on stderr for each thing that whoever runs it should know, said where it is handled and
 * nowhere else. As people read it, or as JSON (`INTERLUDE_LOG_FORMAT=json`) for a collector; from `INTERLUDE_LOG_LEVEL`
 * up.
 *
 * Lines hold no text of agents or people and no credential. What an error quotes all the same is redacted.
 *
 * It is JavaScript, because the launcher says things, too, and it reads the environment each time, because Next bundles
 * this more than once.
 *
 * @typedef {'debug' | 'info' | 'warn' | 'error'} ServerLogLevel
 * @typedef {{ error?: unknown, requestId?: string, [field: string]: unknown }} About
 */

import { processState } from './process-state.mjs';

/** @type {readonly ServerLogLevel[]} */
const LEVELS = ['debug', 'info', 'warn', 'error'];

/** How many causes of an error are told. */
const MOST_CAUSES = 4;

/** As lib/server/access/secret.ts makes them. */
const SECRET = /\bil([ctse])_[A-Za-z0-9_-]{43}/g;
/** What the environment holds that nobody else may know. */
const SECRET_SETTINGS = [
  'INTERLUDE_TOKEN',
  'INTERLUDE_DATABASE_AUTH_TOKEN',
  'INTERLUDE_CRON_SECRET',
  'CRON_SECRET',
  'INTERLUDE_METRICS_TOKEN',
  'INTERLUDE_OIDC_CLIENT_SECRET',
  'INTERLUDE_WEBHOOK_SECRET',
];
/** In the address of a libSQL server. */
const IN_ADDRESS = /\b(authToken=)[^&\s"'<>]+/gi;
/** What is shorter is no secret, and may be part of any word. */
const SHORTEST_SECRET = 8;

/**
 * Sets what takes the secrets out of every text that is logged from now on. The launcher logs before it is set, and
 * knows no text of agents or people.
 *
 * @param {(text: string) => string} redact
 */
export function redactServerLog(redact) {
  processState().redactLog = redact;
}

/**
 * @param {ServerLogLevel} level
 * @param {string} message a sentence for whoever runs the server
 * @param {About} [about] further fields, for JSON; `error` is told in both formats
 */
export function serverLog(level, message, about = {}) {
  const env = settings();
  if (LEVELS.indexOf(level) < lowest(env)) return;
  if (env.INTERLUDE_LOG_FORMAT === 'json') {
    console.error(line(level, message, about, env));
    return;
  }
  const request = about.requestId ? ` (request ${about.requestId})` : '';
  const error = about.error === undefined ? '' : ` ${errorText(about.error, MOST_CAUSES)}`;
  console.error(withoutSecrets(`[interlude] ${message}${request}${error}`, env));
}

/** Whether anybody would read it: what costs something to say need not be made up. @param {ServerLogLevel} level */
export function isLogged(level) {
  return LEVELS.indexOf(level) >= lowest(settings());
}

/** @returns {Record<string, string | undefined>} */
function settings() {
  return globalThis.process?.env ?? {};
}

/** @param {Record<string, string | undefined>} env */
function lowest({ INTERLUDE_LOG_LEVEL = 'info' }) {
  // a runner on the same machine knows one more
  const named = INTERLUDE_LOG_LEVEL.trim().toLowerCase().replace('fatal', 'error');
  const at = LEVELS.indexOf(/** @type {ServerLogLevel} */ (named));
  return at === -1 ? LEVELS.indexOf('info') : at;
}

/**
 * @param {ServerLogLevel} level
 * @param {string} message
 * @param {About} about
 * @param {Record<string, string | undefined>} env
 */
function line(level, message, { error, ...fields }, env) {
  const told = error === undefined ? {} : { error: errorFields(error, MOST_CAUSES) };
  const time = new Date().toISOString();
  // in the other format an error follows it
  const all = { time, level, message: message.replace(/:?\s*$/, ''), ...fields, ...told };
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
 * As a console shows it: where it was thrown, and what it came from.
 *
 * @param {unknown} error
 * @param {number} causes
 * @returns {string}
 */
function errorText(error, causes) {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack = '', cause } = error;
  // some engines leave it out of the stack
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
  let told = text.includes('il') ? text.replace(SECRET, 'il$1_…') : text;
  for (const name of SECRET_SETTINGS) {
    const secret = env[name]?.trim() ?? '';
    if (secret.length >= SHORTEST_SECRET && told.includes(secret)) told = told.replaceAll(secret, `(${name})`);
  }
  if (told.includes('uth')) told = told.replace(IN_ADDRESS, '$1…');
  return processState().redactLog?.(told) ?? told;
}
