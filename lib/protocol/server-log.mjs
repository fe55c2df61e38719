/**
 * The server's own log: one line on stderr for each thing that whoever runs it should know, said where it is handled and
 * nowhere else. As people read it, or as JSON (`INTERLUDE_LOG_FORMAT=json`) for a collector; from `INTERLUDE_LOG_LEVEL`
 * up.
 *
 * What agents and people write stands in no line, and no credential of ours: one that an error quotes is left out.
 *
 * It is JavaScript, because the launcher says things, too, and it reads the environment each time, because Next bundles
 * this more than once.
 *
 * @typedef {'debug' | 'info' | 'warn' | 'error'} ServerLogLevel
 * @typedef {{ error?: unknown, requestId?: string, [field: string]: unknown }} About
 */

/** @type {readonly ServerLogLevel[]} */
const LEVELS = ['debug', 'info', 'warn', 'error'];

/** How many causes of an error are told. */
const MOST_CAUSES = 4;

/** As lib/access/secret.ts makes them. */
const SECRET = /\bil([ctse])_[A-Za-z0-9_-]{43}/g;

/**
 * @param {ServerLogLevel} level
 * @param {string} message a sentence for whoever runs the server
 * @param {About} [about] further fields, for JSON; `error` is told in both formats
 */
export function serverLog(level, message, about = {}) {
  const env = settings();
  if (LEVELS.indexOf(level) < lowest(env)) return;
  if (env.INTERLUDE_LOG_FORMAT === 'json') {
    console.error(line(level, message, about));
    return;
  }
  const text = `[interlude] ${withoutSecrets(message)}${about.requestId ? ` (request ${about.requestId})` : ''}`;
  if ('error' in about) console.error(text, about.error);
  else console.error(text);
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
 */
function line(level, message, { error, ...fields }) {
  const told = error === undefined ? {} : { error: errorFields(error, MOST_CAUSES) };
  const time = new Date().toISOString();
  // in the other format an error follows it
  const all = { time, level, message: message.replace(/:?\s*$/, ''), ...fields, ...told };
  return JSON.stringify(all, (_, value) => (typeof value === 'string' ? withoutSecrets(value) : value));
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

/** @param {string} text */
function withoutSecrets(text) {
  return text.includes('il') ? text.replace(SECRET, 'il$1_…') : text;
}
