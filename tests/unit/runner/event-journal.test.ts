import { CUSTOM } from '@interlude/protocol/event-fields';
import { EventJournal, EventLines } from '@interlude/runner/logger/event-journal';
import { LevelSwitch } from '@interlude/runner/logger/level-switch';
import type { LogEntry } from '@interlude/runner/logger/logger';
import { createLogger } from '@interlude/runner/logger/logger';
import { describe, expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';
import { play, recordingLines } from '../adapters/play';

function linesOf(recording: string): string[] {
  const lines = new EventLines().read(play(recordingLines(recording)));
  return lines
    .filter(({ level }) => level !== 'debug')
    .map(({ at, level, component, message }) => `${at} ${level} [${component}] ${message}`);
}

describe('EventLines', () => {
  test('logs a failed task, the turn it wakes and a request in that turn', () => {
    expect(linesOf('demo/permission').slice(0, 9)).toEqual([
      '282 info [turns] turn started: answering a message',
      '1659 info [tasks] task bzia01awp “Apply migrations” started (local_bash)',
      '2655 info [turns] turn ended after 2.4 s',
      '3889 warn [tasks] task bzia01awp “Apply migrations” failed, exit 3 after 2.2 s',
      '3969 info [turns] turn started: woken by the end of task bzia01awp “Apply migrations”',
      '9239 info [requests] asking for an answer: permission “Remove the stale migration lock”',
      '15239 info [requests] permission “Remove the stale migration lock”: allowed',
      '16390 info [tasks] task bibg9qgfe “Apply migrations again” started (local_bash)',
      '17891 info [turns] turn ended after 13.9 s',
    ]);
  });

  test('logs the end of a task that a running turn learned of', () => {
    expect(linesOf('demo/folded')).toContain(
      '9654 info [turns] turn ended after 9.3 s; notified about the end of task bzt7sigfr “Convert images”',
    );
  });

  test("logs an interrupted turn, a failed turn and a session's end", () => {
    expect(linesOf('demo/interrupted')).toContain('9372 info [turns] turn interrupted after 5.8 s');
    expect(linesOf('demo/failure')).toContain(
      '7553 error [turns] turn failed after 0.6 s: The model API refused the request (400 invalid_request_error): Credit balance is too low',
    );
    expect(linesOf('demo/failure').at(-1)).toBe('22014 info [session] session ended: exited');
  });

  test('times each run of a task that the agent starts again under its id', () => {
    const task = (occurredAt: number, name: string, run_id: string, more = {}) => ({
      occurredAt,
      event: { type: 'CUSTOM', name, value: { task_id: 't', run_id, ...more } },
    });
    const events = [
      task(1_000, CUSTOM.taskStarted, 'r1', { description: 'Look' }),
      task(4_000, CUSTOM.taskStarted, 'r2', { description: 'Look again' }),
      task(6_000, CUSTOM.taskCompleted, 'r1'),
      task(7_000, CUSTOM.taskCompleted, 'r2'),
    ];
    expect(new EventLines().read(events).map(({ message }) => message)).toEqual([
      'task t “Look” started',
      'task t “Look again” started',
      'task t “Look” completed after 5.0 s',
      'task t “Look again” completed after 3.0 s',
    ]);
  });

  test('remembers a bounded number of tasks and requests', () => {
    const lines = new EventLines();
    const opened = (id: number) => [
      { occurredAt: 1, event: { type: 'CUSTOM', name: CUSTOM.taskStarted, value: { task_id: id, description: 'x' } } },
      { occurredAt: 1, event: { type: 'CUSTOM', name: CUSTOM.requestOpened, value: { request_id: id, title: 'x' } } },
    ];
    lines.read(Array.from({ length: 5_000 }, (_, id) => opened(id)).flat());
    const [task, request] = lines.read([
      { occurredAt: 2, event: { type: 'CUSTOM', name: CUSTOM.taskCompleted, value: { task_id: 0 } } },
      { occurredAt: 2, event: { type: 'CUSTOM', name: CUSTOM.requestResolved, value: { request_id: 0 } } },
    ]);
    expect([task?.message, request?.message]).toEqual(['task 0 completed', 'request 0: the agent continued']);
  });

  test('tolerates unknown and incomplete events', () => {
    const event = (name: string, value?: unknown) => ({
      occurredAt: 5,
      event: { type: 'CUSTOM', name, ...(value === undefined ? {} : { value }) },
    });
    const odd = [event(CUSTOM.taskCompleted, { task_id: 't' }), event(CUSTOM.requestResolved), event('their:own')];
    expect(new EventLines().read([...odd, { occurredAt: 6, event: { type: 'RUN_FINISHED' } }])).toEqual([
      { at: 5, level: 'info', component: 'tasks', message: 'task t completed' },
      { at: 5, level: 'info', component: 'requests', message: 'request undefined: the agent continued' },
      { at: 6, level: 'info', component: 'turns', message: 'turn ended' },
    ]);
  });
});

test('EventJournal writes lines with event times, emitted events at debug level, and nothing for skipped events', async () => {
  const entries: LogEntry[] = [];
  const level = new LevelSwitch('info');
  const logger = createLogger({ agentId: 'a', dir: await tempDir(), level, onRecord: (entry) => entries.push(entry) });
  const events = play(recordingLines('demo/permission'));
  const journal = new EventJournal(logger, 'recording');
  journal.remember(events.filter(({ occurredAt }) => occurredAt < 2_000));
  expect(entries).toEqual([]);
  journal.write(events.filter(({ occurredAt }) => occurredAt >= 2_000 && occurredAt < 3_000));
  expect(entries).toEqual([{ at: 2655, level: 'info', component: 'turns', message: 'turn ended after 2.4 s' }]);
  level.set('debug', { by: 'ada' });
  journal.write([{ occurredAt: 9, event: { type: 'TEXT_MESSAGE_START' } }]);
  expect(entries.slice(-2)).toMatchObject([
    { marker: { kind: 'level', level: 'debug', previous: 'info', by: 'ada' } },
    { at: 9, level: 'debug', component: 'recording', message: 'emitted TEXT_MESSAGE_START' },
  ]);
  logger.close();
});
