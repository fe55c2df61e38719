import { requestDigest } from '@interlude/protocol/request-digest';
import { type HookRouterOptions, routeHook } from '@interlude/runner/sources/hooks/hooks-source';
import { stopDecision } from '@interlude/runner/sources/hooks/message-inbox';
import { PermissionHooks } from '@interlude/runner/sources/hooks/permission-hooks';
import type { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import { afterEach, describe, expect, test, vi } from 'vitest';

const NEVER = new AbortController().signal;
const obligation = (messageId: string, sentAt: number) => ({
  ...{ messageId, sentAt, text: `Question ${messageId}`, unseen: false },
  from: { kind: 'person' as const, id: 'Ada' },
});

afterEach(() => vi.useRealTimers());

describe('the end of a turn', () => {
  test('is blocked for pending replies, oldest first', () => {
    const decision = stopDecision([obligation('m2', 2), obligation('m1', 1)], false);
    expect(JSON.parse(decision?.output ?? '')).toMatchObject({ decision: 'block' });
    expect(decision?.messageIds).toEqual(['m1', 'm2']);
  });

  test('is not blocked without pending replies', () => {
    expect(stopDecision([], false)).toBeNull();
  });

  test('is not blocked twice in a row', () => {
    expect(stopDecision([obligation('m1', 1)], true)).toBeNull();
  });

  test('waits for a slow disk no longer than 300 ms', async () => {
    vi.useFakeTimers();
    const mirror = {
      ...{ sessionId: 's1', isLeft: false, hookRan: () => {}, step: async () => {} },
      ...{ isInFlight: () => false, wasTyped: () => false },
      // never stored
      offer: () => new Promise<void>(() => {}),
    };
    const options: HookRouterOptions = {
      mirror: () => mirror as unknown as SessionMirror,
      obligations: () => [{ ...obligation('m1', 1), sessionId: 's1' }],
      inbox: { waitingFor: () => [], wasRefused: () => false } as unknown as HookRouterOptions['inbox'],
      permissions: heldPermissions(),
      offer: () => null,
      log: () => {},
    };
    const input = { session_id: 's1', transcript_path: '/tmp/s1.jsonl', last_assistant_message: 'Done.' };
    const call = { event: 'Stop', input, pid: 1, at: null, withinMs: null, signal: NEVER };
    let printed = '';
    void Promise.resolve(routeHook(call, options)).then((output) => {
      printed = output;
    });
    await vi.advanceTimersByTimeAsync(299);
    expect(printed).toBe('');
    await vi.advanceTimersByTimeAsync(1);
    expect(printed).toContain('"decision":"block"');
  });
});

function heldPermissions(): PermissionHooks {
  return new PermissionHooks({ onChange: () => {}, onAnswered: () => {}, onReleased: () => {} });
}

describe('a permission request of a terminal', () => {
  const about = (command: string, requestId = command) => ({
    asked: {
      ...{ sessionId: 's1', tool: 'Bash', suggestions: [], withinMs: 60_000, signal: NEVER },
      input: { command },
    },
    opened: { request_id: requestId, tool_name: 'Bash', input: { command } },
    answer: {
      ...{ id: 'c1', type: 'permission.decision' as const, sessionId: 's1', createdAt: 1, expiresAt: 2 },
      body: {
        ...{ requestId, behavior: 'allow' as const, openedPosition: '1' },
        digest: requestDigest({ ...{ sessionId: 's1', requestId, tool: 'Bash', position: '1' }, input: { command } }),
      },
    },
  });

  test('gets the answer for its own input only', async () => {
    const permissions = heldPermissions();
    const [list, remove] = [about('ls'), about('rm -rf /')];
    const printed: string[] = [];
    for (const { asked } of [list, remove]) {
      void permissions.hold(asked).then((output) => printed.push(`${asked.input.command}: ${output}`));
    }
    permissions.opened('s1', remove.opened);
    expect(await permissions.answer(remove.answer)).toBeNull();
    permissions.release(null);
    await Promise.resolve();
    expect(printed).toEqual([expect.stringMatching(/^rm -rf \/: .*"behavior":"allow"/), 'ls: ']);
  });

  test('refuses an answer with another digest', async () => {
    const permissions = heldPermissions();
    const [list, other] = [about('ls', 'q1'), about('rm -rf /', 'q1')];
    const output = permissions.hold(list.asked);
    permissions.opened('s1', list.opened);
    expect(await permissions.answer(other.answer)).toMatch(/request has changed since it was answered/);
    permissions.release(null);
    expect(await output).toBe('');
  });
});

/** The output of this tool's hook for an answer. */
async function printedFor(tool: string, input: object, answer: object, kind: 'permission' | 'question' = 'permission') {
  const answered: unknown[] = [];
  const permissions = new PermissionHooks({
    onChange: () => {},
    onAnswered: (_session, _request, told) => answered.push(told),
    onReleased: () => {},
  });
  const about = { sessionId: 's1', tool, suggestions: [], withinMs: 60_000, signal: NEVER };
  const printed = permissions.hold({ ...about, input });
  permissions.opened('s1', { request_id: 'q1', kind, tool_name: tool, input });
  const digest = requestDigest({ sessionId: 's1', requestId: 'q1', tool, input, position: '1' });
  const type = 'answers' in answer ? 'question.answer' : 'permission.decision';
  const body = { requestId: 'q1', openedPosition: '1', digest, ...answer };
  const command = { id: 'c1', type, sessionId: 's1', createdAt: 1, expiresAt: 2, body };
  const refusal = await permissions.answer(command as Parameters<PermissionHooks['answer']>[0]);
  permissions.release(null);
  return { refusal, answered, decision: JSON.parse((await printed) || 'null')?.hookSpecificOutput.decision };
}

describe('a question of a terminal', () => {
  const questions = [
    { question: 'Which database?', header: 'Database', options: [{ label: 'SQLite' }] },
    { question: 'Which parts?', header: 'Parts', options: [{ label: 'Search' }, { label: 'Sync' }], multiSelect: true },
  ];
  const ask = (answer: object) => printedFor('AskUserQuestion', { questions }, answer, 'question');

  test('is answered by question text with joined choices', async () => {
    const { decision, answered } = await ask({ answers: { Database: 'SQLite', 'Which parts?': ['Search', 'Sync'] } });
    const answers = { 'Which database?': 'SQLite', 'Which parts?': 'Search, Sync' };
    expect(decision).toEqual({ behavior: 'allow', updatedInput: { questions, answers } });
    expect(answered).toEqual([{ behavior: 'allow', message: 'SQLite, Search, Sync' }]);
  });

  test('can be declined, but not allowed without an answer', async () => {
    expect((await ask({ behavior: 'deny' })).decision).toEqual({
      behavior: 'deny',
      message: 'A person declined this.',
    });
    const { refusal, decision } = await ask({ behavior: 'allow' });
    expect(refusal).toMatch(/this is a question/);
    expect(decision).toBeUndefined();
  });
});

test('approves a plan with its input', async () => {
  const input = { plan: '# Build it', planFilePath: '/p.md' };
  const { decision } = await printedFor('ExitPlanMode', input, { behavior: 'allow' });
  expect(decision).toEqual({ behavior: 'allow', updatedInput: input });
  const other = await printedFor('ExitPlanMode', input, { behavior: 'deny', message: 'In three steps.' });
  expect(other.decision).toEqual({ behavior: 'deny', message: 'In three steps.' });
});

test('allows other tools without an input', async () => {
  const { decision } = await printedFor('Bash', { command: 'ls' }, { behavior: 'allow' });
  expect(decision).toEqual({ behavior: 'allow' });
});
