import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '@interlude/runner/cli/command';
import { CliError, EXIT, type ExitCode, usageError } from '@interlude/runner/cli/exit';
import { readFlags, SWITCH, TEXT } from '@interlude/runner/cli/flags';
import { interludeCommand } from '@interlude/runner/shown-command.mjs';
import { errorCode } from '@interlude/runner/system-error.mjs';
import { databaseErrorCode, databaseFault, firstLine, openError } from '@/db/database-error';
import { backup } from './backup';
import { check } from './check';
import { copy } from './copy-database';
import { nameOf, ownPlace, type Place, placeOf } from './place';
import { vacuum } from './vacuum';

const HELP = `Usage: ${interludeCommand(['db'])} <backup|check|vacuum|copy> [options]

Looks after the dashboard's database. All of it may run while the dashboard does.

  backup FILE      a copy of one moment in a new file, which is a database that Interlude opens. Of a libSQL server, too
  check            whether the database is sound: its pages, its schema, and what must hold between its rows, and that
                   no entry of the audit was changed. Each finding is a line that says what to do
  vacuum           gives the space of what was removed back to the disk, in pieces, so that nobody waits for it
         --full    rewrites the file at once. Whoever writes waits meanwhile; needs as much free space as the file has
  copy FROM TO     all of one database into a new one: of a file to a libSQL server, back, or between two of a kind.
                   Each is a path, or an address such as libsql://<host>. One that was cut off is not taken for whole

  --database DB           for backup, check, vacuum: another database than the dashboard's
  --from-token-file F     a file with the token of the server that is read; also of --database
  --to-token-file F       the same of the server that is written to

The dashboard's database is INTERLUDE_DATABASE_URL (with INTERLUDE_DATABASE_AUTH_TOKEN), else the file in
INTERLUDE_DATA_DIR. The same token is used for that address where no file is named.

Exit codes: 0 done, 1 failed or something was found, 2 usage.`;

type Environment = Record<string, string | undefined>;

const FLAGS = { database: TEXT, full: SWITCH, 'from-token-file': TEXT, 'to-token-file': TEXT } as const;
const ACTIONS = { backup: 1, check: 0, vacuum: 0, copy: 2 } as const;

export const command: Command = { help: HELP, run: db };

async function db(argv: string[], env: Environment): Promise<ExitCode> {
  const { values, positionals } = readFlags('db', argv, FLAGS, env);
  const [action = '', ...names] = positionals;
  if (!isAction(action)) throw usageError('say backup, check, vacuum or copy', 'db');
  if (names.length !== ACTIONS[action]) throw usageError(MISSING[action], 'db');
  if (values.full && action !== 'vacuum') throw usageError('--full is for vacuum', 'db');
  if (values.database !== undefined && action === 'copy') throw usageError('copy names both databases itself', 'db');
  const tokens = { from: tokenIn(values['from-token-file']), to: tokenIn(values['to-token-file']) };
  if (action === 'copy') {
    const [from, to] = [named(names[0] ?? '', tokens.from, env), named(names[1] ?? '', tokens.to, env)];
    if (isSame(from, to)) throw usageError('both are the same database', 'db');
    return inWords(
      `the copy of ${nameOf(from)} to ${nameOf(to)} stopped, and counts for nothing until it is made anew`,
      null,
      () => copy(from, to),
    );
  }
  const place = values.database === undefined ? ownPlace(env) : named(values.database, tokens.from, env);
  return inWords(`the database ${nameOf(place)}`, place.kind === 'file' ? place.path : null, async () => {
    if (action === 'backup') return backup(place, resolve(names[0] ?? ''));
    return action === 'check' ? check(place) : vacuum(place, { full: values.full === true });
  });
}

const MISSING = {
  backup: 'name one file for the copy',
  check: '"check" takes options only',
  vacuum: '"vacuum" takes options only',
  copy: 'name the database to copy, and the one to copy to',
};

function isAction(text: string): text is keyof typeof ACTIONS {
  return Object.hasOwn(ACTIONS, text);
}

/** The dashboard's own address has the dashboard's own token. */
function named(text: string, token: string | undefined, env: Environment): Place {
  const isOwn = env.INTERLUDE_DATABASE_URL === text;
  return placeOf(text, token ?? (isOwn ? env.INTERLUDE_DATABASE_AUTH_TOKEN : undefined));
}

function tokenIn(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CliError(EXIT.failed, `the token in ${file} can't be read (${errorCode(error)})`);
  }
}

function isSame(from: Place, to: Place): boolean {
  if (from.kind === 'file') return to.kind === 'file' && from.path === to.path;
  return to.kind === 'server' && from.url === to.url;
}

/**
 * What the database itself says is wrong, as one line.
 *
 * @param file whose troubles are known by their codes
 */
async function inWords(what: string, file: string | null, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CliError || databaseErrorCode(error) === null) throw error;
    const isKnown = file !== null && databaseFault(error) !== 'refused';
    throw new CliError(EXIT.failed, isKnown ? openError(error, file).message : `${what}: ${firstLine(error)}`);
  }
}
