import type { Task, Turn } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { ingest, inProcessTarget } from '../support/ingest-target';
import { adaptRecording, assistantTexts } from '../support/recordings';

/** Real Claude Code runs through the adapter and ingest into libSQL, read back like a page. */

interface Replayed {
  turns: Turn[];
  tasks: Task[];
}

const read = new Map<string, Promise<Replayed>>();

/** Each recording is sent once for all tests. */
function replayed(file: string): Promise<Replayed> {
  const known = read.get(file) ?? replay(file);
  read.set(file, known);
  return known;
}

/** Sends a recording like an outbox, a few records per request, and reads it back. */
async function replay(file: string): Promise<Replayed> {
  const target = await inProcessTarget();
  const records = adaptRecording(file).flatMap(({ at, events }) =>
    events.map((event) => ({ kind: 'event', agentId: 'a1', sessionId: 's1', occurredAt: at, event })),
  );
  const numbered = records.map((record, index) => ({ seq: index + 1, ...record }));
  for (let from = 0; from < numbered.length; from += 7) await ingest(target, numbered.slice(from, from + 7));
  const page = await readTranscript(unscoped(target.database), 's1', { before: null, limit: 100 });
  const tasks = await readTasks(unscoped(target.database), 's1');
  await target.close();
  return { turns: page?.turns ?? [], tasks: tasks?.tasks ?? [] };
}

/** One line per turn: its cause or prompt, and its texts and reported tasks. */
function outline({ turns, tasks }: { turns: Turn[]; tasks: Task[] }): string[] {
  const name = (id: string) => tasks.find((task) => task.id === id)?.description ?? id;
  return turns.map((turn) => {
    const ended = turn.items.flatMap((item) => {
      if (item.kind === 'message') return [`${item.role === 'user' ? '> ' : ''}${item.text}`];
      if (item.kind === 'task') return [`[${name(item.id)} ${item.phase}]`];
      return item.kind === 'request' ? [`(${item.outcome})`] : [];
    });
    const cause = turn.trigger === null ? '' : ` by ${turn.trigger.taskIds.map(name).join(', ')}`;
    return `${turn.kind} ${turn.state}${cause}: ${ended.join(' ')}`;
  });
}

const taskFacts = (tasks: Task[]) => tasks.map((task) => [task.description, task.status, task.exitCode]);

const END = 'none finished: ';
const STARTED = 'user finished: > START [Poll started] Started the poll in the background.';
const WOKEN = 'between-run finished by Poll: [Poll failed] Poll exited with code 3';

const EXPECTED: [file: string, story: string[], tasks: unknown[]][] = [
  ['bash-bg', [STARTED, WOKEN, END], [['Poll', 'failed', 3]]],
  ['bash-bg-min', [STARTED, WOKEN, END], [['Poll', 'failed', 3]]],
  ['hooks-bash', [STARTED, WOKEN, END], [['Poll', 'failed', 3]]],
  ['end-input', [STARTED, WOKEN, END], [['Poll', 'failed', 3]]],
  ['race', [STARTED, WOKEN, 'user finished: > USERMSG-A Reply to USERMSG-A.', END], [['Poll', 'failed', 3]]],
  [
    'midturn-text',
    [
      'user finished: > START [Poll started] Started the poll and now I talk slowly for a while without any tool call.',
      WOKEN,
      END,
    ],
    [['Poll', 'failed', 3]],
  ],
  [
    'perm',
    [
      'user finished: > START (allowed) [Poll started] Started the poll.',
      'between-run finished by Poll: [Poll failed] Poll failed, I look at it. (allowed) Looked at it.',
      END,
    ],
    [['Poll', 'failed', 3]],
  ],
  [
    'stoptask',
    [
      'user finished: > START [Long poll started] Started a long poll.',
      // A stop does not wake the agent, which sees it with the next message.
      'user finished: [Long poll stopped] > USERMSG-A Long poll killed | Reply to USERMSG-A.',
      END,
    ],
    [['Long poll', 'stopped', null]],
  ],
  [
    '3bg',
    [
      'user finished: > START [Poll 1 started] [Poll 2 started] [Poll 3 started] Started three polls.',
      'between-run finished by Poll 1: [Poll 1 failed] Poll 1 exited with code 1',
      'between-run finished by Poll 2: [Poll 2 failed] Poll 2 exited with code 2',
      'between-run finished by Poll 3: [Poll 3 failed] Poll 3 exited with code 3',
      END,
    ],
    [
      ['Poll 1', 'failed', 1],
      ['Poll 2', 'failed', 2],
      ['Poll 3', 'failed', 3],
    ],
  ],
  [
    'agents',
    [
      'user finished: > START [Agent A started] [Agent B started] [Agent C started] Started three agents.',
      'between-run finished by Agent A: [Agent A completed] Agent A: Agent A is done.',
      'between-run finished by Agent B: [Agent B completed] Agent B: Agent B is done.',
      'between-run finished by Agent C: [Agent C completed] Agent C: Agent C is done.',
      END,
    ],
    [
      ['Agent A', 'completed', null],
      ['Agent B', 'completed', null],
      ['Agent C', 'completed', null],
    ],
  ],
];

const DEMO = [
  'deploy-watch',
  'failure',
  'folded',
  'interrupted',
  'long-build',
  'message-while-waking',
  'permission',
  'research',
  'resume',
  'test-run',
  'triple',
  'user-twice',
].map((name) => `demo/${name}`);

describe('a recording', () => {
  it.each(EXPECTED)('%s reads as it happened', async (file, expected, tasks) => {
    const found = await replayed(file);
    expect(outline(found)).toEqual(expected);
    expect(taskFacts(found.tasks)).toEqual(tasks);
    for (const task of found.tasks) expect(task.summary).not.toBeNull();
  });

  it.each([...EXPECTED.map(([file]) => file), ...DEMO])(
    '%s has each assistant text exactly once, in order',
    async (file) => {
      const { turns } = await replayed(file);
      const texts = turns.flatMap((turn) =>
        turn.items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
      );
      expect(texts).toEqual(assistantTexts(file));
      expect(
        turns.filter((turn) => turn.kind === 'none').flatMap((turn) => turn.items.map((item) => item.kind)),
      ).not.toContain('message');
    },
  );

  it.each([...EXPECTED.map(([file]) => file), ...DEMO])(
    '%s leaves nothing open, and links every task end to the turn that answered it',
    async (file) => {
      const { turns, tasks } = await replayed(file);
      expect(turns.map((turn) => turn.state)).not.toContain('open');
      for (const task of tasks) {
        expect(task.status).not.toBe('running');
        const shownIn = turns.filter((turn) =>
          turn.items.some(
            (item) =>
              item.kind === 'task' &&
              item.id === task.id &&
              item.phase !== 'started' &&
              !(item.phase === 'lost' && task.status !== 'lost'),
          ),
        );
        expect(shownIn.map((turn) => turn.id)).toHaveLength(1);
        // A task's end woke the failed turn; another turn answered.
        if (task.answeredInTurnId !== null && shownIn[0]?.state !== 'failed')
          expect(shownIn[0]?.id).toBe(task.answeredInTurnId);
      }
      for (const turn of turns.filter((turn) => turn.kind === 'between-run')) {
        expect(turn.trigger?.taskIds.length).toBeGreaterThan(0);
        for (const id of turn.trigger?.taskIds ?? []) expect(tasks.map((task) => task.id)).toContain(id);
      }
    },
  );
});

describe('the demo recordings', () => {
  it('show one turn for three tasks that ended together', async () => {
    const { turns } = await replayed('demo/triple');
    const between = turns.filter((turn) => turn.kind === 'between-run');
    expect(between.map((turn) => turn.trigger?.taskIds.length)).toContain(3);
  });

  it('show a failed between-run turn as failed', async () => {
    const { turns } = await replayed('demo/failure');
    const failed = turns.find((turn) => turn.state === 'failed');
    expect(failed).toMatchObject({ kind: 'between-run' });
    expect(failed?.error?.message).toContain('Credit balance');
  });

  it('show an interrupted turn as interrupted, with its text', async () => {
    const { turns } = await replayed('demo/interrupted');
    const broken = turns.find((turn) => turn.state === 'interrupted');
    expect(broken?.kind).toBe('user');
    expect(broken?.items.some((item) => item.kind === 'message' && item.role === 'assistant')).toBe(true);
  });

  it('show a task end in the user turn that reported it', async () => {
    const { turns, tasks } = await replayed('demo/folded');
    expect(turns.filter((turn) => turn.kind === 'between-run')).toEqual([]);
    expect(tasks[0]?.answeredInTurnId).toBe(turns.find((turn) => turn.kind === 'user')?.id);
  });

  it('show two queued messages in one turn', async () => {
    const { turns } = await replayed('demo/user-twice');
    expect(turns.map((turn) => turn.userMessageIds.length)).toContain(2);
  });

  it('show a subagent’s output under its task and nowhere else', async () => {
    const { turns, tasks } = await replayed('demo/research');
    expect(tasks.filter((task) => task.kind === 'subagent')).toHaveLength(3);
    expect(turns.filter((turn) => turn.kind === 'between-run')).toHaveLength(3);
  });
});
