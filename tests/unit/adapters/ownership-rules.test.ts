import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

/**
 * Rules of ownership that every source must keep. Those an adapter decides are checked here in every recording of every
 * kind; shared code keeps the others, and its tests are named here.
 */
type Rule = { rule: string } & (
  | { holds: (told: readonly EmittedEvent[]) => void }
  /** `file: title of a test`, or the start of the title. */
  | { keptBy: readonly string[] }
);

const RULES: readonly Rule[] = [
  {
    rule: 'work is of the session in which it was started, by the call that started it',
    holds(told) {
      const calls = new Map<unknown, string>();
      for (const { sessionId, event } of told) {
        if (event.type === 'TOOL_CALL_START') calls.set(event.toolCallId, sessionId);
        const call = event.name === 'task:started' ? textOf(fieldsOf(event.value).tool_use_id) : null;
        // A call made before the recording has no owner in it.
        if (call !== null) expect(calls.get(call) ?? sessionId, `the session of ${call}`).toBe(sessionId);
      }
    },
  },
  {
    rule: 'that it was started is told before anything else of it, if it is told',
    holds(told) {
      const spokenOf = new Set<string>();
      for (const { sessionId, event, value } of tasksIn(told)) {
        const task = `${sessionId} ${value.task_id}`;
        if (event.name === 'task:started') expect(spokenOf).not.toContain(task);
        if (event.name === 'task:completed') spokenOf.delete(task);
        else spokenOf.add(task);
      }
    },
  },
  {
    rule: 'everything of a task is told in one session, by the id it has there',
    holds(told) {
      const of = new Map<unknown, string>();
      for (const { sessionId, value } of tasksIn(told)) {
        expect(of.get(value.task_id) ?? sessionId).toBe(sessionId);
        of.set(value.task_id, sessionId);
      }
    },
  },
  {
    rule: 'what proves nothing is delivered to nobody',
    keptBy: ['tests/contract/ownership-contract.ts: does not count another agent’s task with the same id as proof'],
  },
  {
    rule: 'what has no owner is parked where people see it',
    keptBy: [
      'tests/contract/ownership-contract.ts: resolves a task id of two other sessions by its run, and parks it without one',
      'tests/contract/ownership-contract.ts: parked records are listed in pages',
    ],
  },
  {
    rule: 'live, after a cut and in a replay the same is told',
    keptBy: ['tests/unit/adapters/ownership.test.ts: %s and another session emit the same events as alone'],
  },
  {
    rule: 'whose it is is known before anything counts as taken',
    keptBy: ['tests/contract/ownership-contract.ts: resolves the records of a batch in their order'],
  },
  {
    rule: 'a command is leased, and acknowledged once the agent has it',
    keptBy: [
      'tests/support/source-contract.ts: delivers a message once when killed during its delivery',
      'lib/conformance/runner/command-checks.ts: a message is acknowledged as delivered once the agent has it',
    ],
  },
  {
    rule: 'an agent that is busy or away uses up no attempt',
    keptBy: [
      'tests/property/commands.test.ts: take effect exactly once with disconnects, restarts and waits at any time',
    ],
  },
  {
    rule: 'a task has one end for each of its runs',
    holds(told) {
      const ended = new Set<string>();
      for (const { sessionId, event, value } of tasksIn(told)) {
        const run = `${sessionId} ${value.task_id} ${value.run_id ?? ''}`;
        if (event.name === 'task:started') ended.delete(run);
        if (event.name !== 'task:completed') continue;
        expect(ended, `${run} ends again`).not.toContain(run);
        ended.add(run);
      }
    },
  },
  {
    rule: 'a turn that a task woke is in the session of that task, whatever else goes on',
    holds(told) {
      const started = new Set<string>();
      for (const { sessionId, event } of told) {
        if (event.name === 'task:started') started.add(`${sessionId} ${fieldsOf(event.value).task_id}`);
        const { trigger } = event.metadata?.interlude ?? {};
        for (const taskId of listOf(fieldsOf(trigger).taskIds)) expect(started).toContain(`${sessionId} ${taskId}`);
      }
    },
  },
  {
    rule: 'to begin anew ends what a session owns, to compact its context does not',
    keptBy: [
      'tests/integration/hooks-companion.test.ts: appears in the dashboard as it happened, across restarts of the companion',
      'tests/unit/adapters/opencode-adapter.test.ts: continues through a compaction',
    ],
  },
  {
    rule: 'that a task ended is shown as what it is, and not as a message of a person',
    holds(told) {
      for (const { event } of told) {
        const { turn, userMessageIds, trigger } = event.metadata?.interlude ?? {};
        if (event.type !== 'RUN_STARTED' || turn !== 'between-run' || trigger?.kind !== 'task') continue;
        expect(userMessageIds ?? []).toEqual([]);
      }
    },
  },
  {
    rule: 'to read a state takes nothing from it',
    keptBy: ['tests/contract/reads-contract.ts: changes no row with cookie or token, for known and unknown resources'],
  },
  {
    rule: 'what a person drops is recorded, and can be looked up',
    keptBy: [
      'tests/contract/ownership-contract.ts: parked records are discarded with a line in the session, and can be looked up',
    ],
  },
];

function tasksIn(told: readonly EmittedEvent[]) {
  return told.flatMap(({ sessionId, event }) =>
    event.type === 'CUSTOM' && String(event.name).startsWith('task:')
      ? [{ sessionId, event, value: fieldsOf(event.value) }]
      : [],
  );
}

/** Claude's recordings are beside the folders of the other kinds. */
function allOf(kind: string): [string, RecordedLine[]][] {
  const folder = existsSync(`tests/fixtures/recordings/${kind}`) ? kind : '.';
  return recordingsOf(folder).map((name) => [name, recordedLines(folder, name)]);
}

test('there are fifteen rules', () => expect(RULES).toHaveLength(15));

const PLAYED = new Map(
  Object.keys(RECORDED_KINDS).map((kind) => [
    kind,
    allOf(kind).map(([name, lines]) => [name, playRecorded(kind, lines)] as const),
  ]),
);

describe.each(RULES)('$rule', (rule) => {
  if ('holds' in rule) {
    test.each(Object.keys(RECORDED_KINDS))('in every recording of the kind %s', (kind) => {
      const recordings = PLAYED.get(kind) ?? [];
      expect(recordings.length).toBeGreaterThan(0);
      for (const [name, told] of recordings) {
        expect(told.length, name).toBeGreaterThan(0);
        rule.holds(told);
      }
    });
  } else {
    test.each(rule.keptBy)('is kept by %s', (place) => {
      const [, file = '', title = ''] = /^(\S+): (.*)$/.exec(place) ?? [];
      expect(readFileSync(file, 'utf8')).toContain(title);
    });
  }
});

test('every kind has recordings', () => {
  expect(readdirSync('tests/fixtures/recordings').length).toBeGreaterThan(0);
  for (const recordings of PLAYED.values()) expect(recordings.length).toBeGreaterThan(0);
});
