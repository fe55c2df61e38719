import type { LogLevel } from '@interlude/protocol/vocabulary';

export interface WorkLine {
  level: LogLevel;
  component: string;
  message: string;
}

const LEVELS: readonly LogLevel[] = ['debug', 'debug', 'debug', 'info', 'info', 'info', 'info', 'warn'];

/** What a busy runner logs, with ids, numbers, paths and JSON that differ from line to line. Deterministic. */
export function workLine(n: number): WorkLine {
  const random = mixed(n);
  const id = `${hex(random, 8)}-${hex(mixed(random), 4)}-${hex(mixed(random + 7), 4)}`;
  const other = mixed(random + 11);
  const level = other % 1000 === 7 ? 'error' : (LEVELS[other % LEVELS.length] ?? 'info');
  if (n % 100_000 === 33_333) {
    return { level: 'fatal', component: 'hook', message: `hook PostToolUse died: zeppelin-${n} ENOSPC no space left` };
  }
  switch (random % 8) {
    case 0:
      return {
        level,
        component: 'outbox',
        message: `sent batch of ${random % 500} records, acked seq ${n} in ${random % 90}.${random % 10} ms`,
      };
    case 1:
      return { level, component: 'hook', message: `PostToolUse finished for session ${id} exit 0` };
    case 2:
      return {
        level,
        component: 'claude',
        message: `tool call toolu_${hex(random, 8)}${hex(mixed(n + 3), 8)} Bash started in /home/dev/project/src/server.ts`,
      };
    case 3:
      return {
        level,
        component: 'task',
        message: `task ${hex(random, 8)} still running, output file grew to ${random % 10_000_000} bytes`,
      };
    case 4:
      return {
        level,
        component: 'http',
        message: JSON.stringify({
          event: 'request',
          path: `/api/v1/sessions/${id}`,
          status: [200, 204, 404, 500][other % 4],
          durationMs: random % 1000,
        }),
      };
    case 5:
      return {
        level,
        component: 'http',
        message: `connection to 127.0.0.1:${1024 + (random % 60_000)} closed after ${random % 300} s: ECONNRESET`,
      };
    case 6:
      return {
        level,
        component: 'outbox',
        message: `retry ${random % 9} of POST /events in ${random % 30_000} ms: 503 unavailable`,
      };
    default:
      return {
        level,
        component: 'mirror',
        message: `snapshot of obligations written, ${random % 20} owed, revision ${n}`,
      };
  }
}

function mixed(n: number): number {
  let x = (n + 0x9e3779b9) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad) >>> 0;
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97) >>> 0;
  return (x ^ (x >>> 15)) >>> 0;
}

function hex(n: number, digits: number): string {
  return n.toString(16).padStart(8, '0').slice(0, digits);
}
