import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  CliError,
  type Command,
  EXIT,
  type ExitCode,
  readFlags,
  SWITCH,
  TEXT,
  usageError,
} from '@interlude/runner/cli/command';
import { interludeCommand } from '@interlude/runner/host/own-program.mjs';
import { errorCode } from '@interlude/runner/host/system-error.mjs';
import { databaseErrorCode, databaseFault, firstLine, openError } from '@/db/database-error';
import { backup } from './backup';
import { check } from './check';
import { copy } from './copy-database';
import { type DatabaseLocation, dashboardLocation, locationName, parseLocation } from './database-location';
import { vacuum } from './vacuum';

const HELP = `Usage: ${interludeCommand(['db'])} <backup|check|vacuum|copy> [options]

Maintains the dashboard's database. Every command can run while the dashboard does.

  backup FILE      copies a snapshot of the database into a new file, also from a libSQL server
  check            verifies pages, schema, the invariants between rows and the audit chain; prints one line per
                   finding, with the fix
  vacuum           returns free space to the disk in small steps, without blocking writers
         --full    rewrites the file at once: blocks writers, and needs as much free space as the file has
  copy FROM TO     copies a whole database into a new one, between files and libSQL servers in any combination. Each is
                   a path or a URL such as libsql://<host>. An interrupted copy is marked and can't be used

  --database DB           for backup, check and vacuum: a database other than the dashboard's
  --from-token-file F     file with the token of the source server, or of --database
  --to-token-file F       file with the token of the destination server

The dashboard's database is INTERLUDE_DATABASE_URL (with INTERLUDE_DATABASE_AUTH_TOKEN), otherwise the file in
INTERLUDE_DATA_DIR. Without a token file, that URL uses the same token.

Exit codes: 0 done, 1 failed or findings, 2 usage.`;

type Environment = Record<string, string | undefined>;

const FLAGS = { database: TEXT, full: SWITCH, 'from-token-file': TEXT, 'to-token-file': TEXT } as const;
const ARGUMENT_COUNTS = { backup: 1, check: 0, vacuum: 0, copy: 2 } as const;

export const command: Command = { help: HELP, run: db };

async function db(argv: string[], env: Environment): Promise<ExitCode> {
  const { values, positionals } = readFlags('db', argv, FLAGS, env);
  const [action = '', ...names] = positionals;
  if (!isAction(action)) throw usageError('name a command: backup, check, vacuum or copy', 'db');
  if (names.length !== ARGUMENT_COUNTS[action]) throw usageError(USAGE[action], 'db');
  if (values.full && action !== 'vacuum') throw usageError('--full applies to vacuum only', 'db');
  if (values.database !== undefined && action === 'copy') throw usageError('--database does not apply to copy', 'db');
  const tokens = { from: readToken(values['from-token-file']), to: readToken(values['to-token-file']) };
  if (action === 'copy') {
    const [from, to] = [locate(names[0] ?? '', tokens.from, env), locate(names[1] ?? '', tokens.to, env)];
    if (isSame(from, to)) throw usageError('source and destination are the same database', 'db');
    return withDatabaseErrors(
      `the copy of ${locationName(from)} to ${locationName(to)} failed; correct the cause, then run it again`,
      null,
      () => copy(from, to),
    );
  }
  const place = values.database === undefined ? dashboardLocation(env) : locate(values.database, tokens.from, env);
  return withDatabaseErrors(
    `the database ${locationName(place)}`,
    place.kind === 'file' ? place.path : null,
    async () => {
      if (action === 'backup') return backup(place, resolve(names[0] ?? ''));
      return action === 'check' ? check(place) : vacuum(place, { full: values.full === true });
    },
  );
}

const USAGE = {
  backup: 'name the file to create',
  check: 'check takes no arguments',
  vacuum: 'vacuum takes no arguments',
  copy: 'name the source and the destination',
};

function isAction(text: string): text is keyof typeof ARGUMENT_COUNTS {
  return Object.hasOwn(ARGUMENT_COUNTS, text);
}

/** The dashboard's own URL implies its own token. */
function locate(text: string, token: string | undefined, env: Environment): DatabaseLocation {
  const isOwn = env.INTERLUDE_DATABASE_URL === text;
  return parseLocation(text, token ?? (isOwn ? env.INTERLUDE_DATABASE_AUTH_TOKEN : undefined));
}

function readToken(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CliError(
      EXIT.failed,
      `can't read the token file ${file} (${errorCode(error)}); check its path and permissions`,
    );
  }
}

function isSame(from: DatabaseLocation, to: DatabaseLocation): boolean {
  if (from.kind === 'file') return to.kind === 'file' && from.path === to.path;
  return to.kind === 'server' && from.url === to.url;
}

/**
 * Turns a database error into one line.
 *
 * @param file path of a local database, whose errors have known codes
 */
async function withDatabaseErrors(
  label: string,
  file: string | null,
  work: () => Promise<ExitCode>,
): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError || databaseErrorCode(error) === null) throw error;
    const isKnown = file !== null && databaseFault(error) !== 'refused';
    throw new CliError(EXIT.failed, isKnown ? openError(error, file).message : `${label}: ${firstLine(error)}`);
  }
}
