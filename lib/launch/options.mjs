import { parseArgs } from 'node:util';
import { basePathSetting } from '../protocol/base-path.mjs';
import { dataFolder, displayPath, startCommand } from '../runner/host/own-program.mjs';
import { LaunchError } from './launch-error.mjs';

export const START_HELP = `Usage: ${startCommand(['--help']).replace(/ --help$/, '')} [options]

Starts the dashboard: installs and builds what is missing, migrates the database, then serves.

  --demo      also runs a demo fleet: agents that replay recorded runs, and one that answers
  --port N    default: PORT, else 4319; 0 for any free port
  --host H    default: HOST, else 127.0.0.1

Environment: INTERLUDE_DATA_DIR (default ${displayPath(dataFolder({}))}), INTERLUDE_TOKEN (the owner's, at least 16 characters, such as the
output of openssl rand -base64 32; default: created at the first start), INTERLUDE_DATABASE_URL and
INTERLUDE_DATABASE_AUTH_TOKEN for a libSQL server or Turso, INTERLUDE_BASE_PATH to serve below a path of the host,
such as /interlude.`;

/**
 * @param {string[]} argv
 * @param {NodeJS.ProcessEnv} env
 */
export function readOptions(argv, env) {
  const values = parse(argv);
  const port = values.port ?? (env.PORT || '4319');
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new LaunchError(`"${port}" is not a port; use a number from 0 to 65535`, 2);
  }
  return {
    help: values.help === true,
    demo: values.demo === true,
    host: values.host ?? (env.HOST || '127.0.0.1'),
    port: Number(port),
    basePath: basePathOf(env),
    dataDir: dataFolder(env),
  };
}

/** @param {NodeJS.ProcessEnv} env */
function basePathOf(env) {
  try {
    return basePathSetting(env.INTERLUDE_BASE_PATH);
  } catch (error) {
    throw new LaunchError(/** @type {RangeError} */ (error).message, 2);
  }
}

/** @param {string[]} argv */
function parse(argv) {
  try {
    const text = /** @type {const} */ ({ type: 'string' });
    const flag = /** @type {const} */ ({ type: 'boolean' });
    return parseArgs({ args: argv, options: { port: text, host: text, demo: flag, help: { ...flag, short: 'h' } } })
      .values;
  } catch (error) {
    const [why] = String(/** @type {Error} */ (error).message).split('. ');
    throw new LaunchError(`${why}; see "${startCommand(['--help'])}"`, 2);
  }
}
