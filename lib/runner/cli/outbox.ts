import { basename, join, resolve } from 'node:path';
import { interludeCommand } from '../host/own-program.mjs';
import { decide, type OutboxReport, outboxFiles, type PoisonedRow, poisonedIn, readOutbox } from '../outbox/operations';
import type { Command } from './command';
import { CliError, EXIT, type ExitCode, print, readFlags, SWITCH, TEXT, table, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['outbox'])} <status|list|redrive|discard> [options]

Shows and manages the records that this machine's runners hold for the dashboard. Works while they run.

  status          list every outbox: unsent records, their age, refused and lost ones
  list            list the records that the server refused for good
  redrive         send refused records again, as new records, within seconds or at the next start. Skips status reports,
                  which newer ones have replaced
  discard         stop counting refused records; they stay in "list --all"

  --outbox NAME   this outbox only, by its name in "status"
  --id N          this record only; may be repeated; needs --outbox
  --all           list: include records sent again or discarded; redrive, discard: every refused record
  --json          print one JSON object a line

Exit codes: 0 done, 1 failed or nothing to do, 2 usage.`;

type Environment = Record<string, string | undefined>;
type Action = 'status' | 'list' | 'redrive' | 'discard';

export const command: Command = { help: HELP, run: outbox };

async function outbox(argv: string[], env: Environment): Promise<ExitCode> {
  const { action, only, ids, all, json } = readOptions(argv, env);
  const files = await chosen(env, only);
  if (action === 'status') return await status(files, json);
  if (action === 'list') return await list(files, all, json);
  if (ids.length === 0 && !all) throw usageError('add --id N or --all', 'outbox');
  return await settle(files, action, all ? 'all' : ids, json);
}

async function status(files: string[], json: boolean): Promise<ExitCode> {
  const reports: OutboxReport[] = [];
  for (const file of files) {
    const report = await readOutbox(file).catch((error: Error) => {
      process.stderr.write(`interlude: ${basename(file)} can't be read: ${error.message}\n`);
      return null;
    });
    if (report !== null) reports.push(report);
  }
  const now = Date.now();
  if (json) {
    for (const { oldestAt, file, ...report } of reports) {
      const oldestAgeMs = oldestAt === null ? null : Math.max(0, now - oldestAt);
      print(JSON.stringify({ outbox: nameOf(file), ...report, oldestAgeMs }));
    }
    return EXIT.done;
  }
  if (reports.length === 0) print('no outbox yet');
  else {
    table(
      ['OUTBOX', 'RUNNER', 'WAITING', 'OLDEST', 'SIZE', 'REFUSED', 'LOST'],
      reports.map((report) => [
        nameOf(report.file),
        report.pid === null ? '-' : String(report.pid),
        String(report.depth),
        report.oldestAt === null ? '-' : duration(now - report.oldestAt),
        size(report.bytes),
        report.redriving > 0 ? `${report.poisoned} (+${report.redriving} to send)` : String(report.poisoned),
        String(report.lost),
      ]),
    );
  }
  return EXIT.done;
}

async function list(files: string[], all: boolean, json: boolean): Promise<ExitCode> {
  const rows: { name: string; row: PoisonedRow }[] = [];
  for (const file of files) {
    for (const row of await poisonedIn(file)) {
      if (all || row.state === 'kept' || row.state === 'redrive') rows.push({ name: nameOf(file), row });
    }
  }
  if (json) {
    for (const { name, row } of rows) {
      const { body, ...about } = row;
      print(JSON.stringify({ outbox: name, ...about, record: JSON.parse(body) }));
    }
    return EXIT.done;
  }
  if (rows.length === 0) print('no refused records');
  else {
    table(
      ['OUTBOX', 'ID', 'STATE', 'REFUSED AT', 'KIND', 'AGENT', 'SESSION', 'REASON'],
      rows.map(({ name, row }) => {
        const record = JSON.parse(row.body) as { kind?: string; agentId?: string; sessionId?: string };
        const at = new Date(row.poisonedAt).toISOString();
        const { kind = '-', agentId = '-', sessionId = '-' } = record;
        return [name, String(row.id), row.state, at, kind, agentId, sessionId, row.reason];
      }),
    );
  }
  return EXIT.done;
}

async function settle(
  files: string[],
  action: 'redrive' | 'discard',
  ids: number[] | 'all',
  json: boolean,
): Promise<ExitCode> {
  let changed = 0;
  let refused = 0;
  for (const file of files) {
    const decision = await decide(file, ids, action === 'redrive' ? 'redrive' : 'discarded', Date.now());
    changed += decision.changed.length;
    refused += decision.refused.length;
    if (json) print(JSON.stringify({ outbox: nameOf(file), action, ...decision }));
    for (const { id, why } of decision.refused) {
      process.stderr.write(`interlude: ${nameOf(file)} ${id}: ${why}\n`);
    }
  }
  const records = `${changed} record${changed === 1 ? '' : 's'}`;
  if (!json && action === 'redrive') print(`sending ${records} again`);
  else if (!json) print(`discarded ${records}; see "${interludeCommand(['outbox', 'list', '--all'])}"`);
  return changed === 0 || refused > 0 ? EXIT.failed : EXIT.done;
}

async function chosen(env: Environment, only: string | undefined): Promise<string[]> {
  const files = await outboxFiles(join(openDataDir(env), 'outboxes'));
  if (only === undefined) return files;
  const found = files.filter((file) => nameOf(file) === only || file === resolve(only));
  if (found.length === 0)
    throw new CliError(EXIT.failed, `unknown outbox "${only}"; see "${interludeCommand(['outbox', 'status'])}"`);
  return found;
}

function nameOf(file: string): string {
  return basename(file, '.db');
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 1_024 ** 2 ? `${Math.round(bytes / 1_024)} KiB` : `${(bytes / 1_024 ** 2).toFixed(1)} MiB`;
}

function readOptions(argv: string[], env: Environment) {
  const flags = { outbox: TEXT, id: { ...TEXT, multiple: true }, all: SWITCH, json: SWITCH } as const;
  const { values, positionals } = readFlags('outbox', argv, flags, env);
  const [action, ...more] = positionals;
  if (!['status', 'list', 'redrive', 'discard'].includes(action ?? '') || more.length > 0) {
    throw usageError('use status, list, redrive or discard', 'outbox');
  }
  const ids = (values.id ?? []).map(Number);
  if (ids.some((id) => !Number.isSafeInteger(id) || id < 1))
    throw usageError('--id must be the number of a record', 'outbox');
  if (ids.length > 0 && values.outbox === undefined) throw usageError('--id needs --outbox', 'outbox');
  if (ids.length > 0 && values.all) throw usageError('use --id or --all, not both', 'outbox');
  const { all = false, json = false } = values;
  return { action: action as Action, only: values.outbox, ids, all, json };
}
