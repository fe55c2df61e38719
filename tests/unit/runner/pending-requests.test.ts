import { requestDigest } from '@interlude/protocol/request-digest';
import type { AnswerCommand } from '@interlude/runner/host/pending-requests';
import {
  answerOf,
  type Decision,
  type PermissionRequest,
  PermissionRequests,
  resultOf,
} from '@interlude/runner/sources/claude/permission-requests';
import { describe, expect, test } from 'vitest';

function request(tool: string, input: Record<string, unknown> = {}, more: object = {}): PermissionRequest {
  return { tool, input, context: { signal: new AbortController().signal, ...more } };
}

/** Fields that the server adds to an answer to this request. */
function about(requestId: string, { tool, input }: PermissionRequest, position = '7') {
  const digest = requestDigest({ sessionId: 's', requestId, tool, input, position });
  return { requestId, digest, openedPosition: position };
}

const allow = (requestId: string, asked: PermissionRequest) =>
  ({ kind: 'permission', body: { ...about(requestId, asked), behavior: 'allow' } }) as const;

function decide(pending: PermissionRequests, requestId: string, { kind, body }: Extract<Decision, { body: object }>) {
  const common = { id: 'c', sessionId: 's', createdAt: 1, expiresAt: 2 };
  const type = kind === 'question' ? 'question.answer' : 'permission.decision';
  return pending.answer({ ...common, type, body: { ...body, requestId } } as AnswerCommand);
}

const questions = {
  questions: [
    { question: 'Which database?', header: 'Database', options: [{ label: 'libSQL' }, { label: 'Postgres' }] },
    { question: 'Which extras?', header: 'Extras', multiSelect: true, options: [] },
  ],
};

describe('a pending request of Claude Code', () => {
  test('gets the decision that names it', async () => {
    const pending = new PermissionRequests('s');
    const asked = request('Bash');
    const one = pending.wait('1', asked, 10_000);
    const other = pending.wait('2', asked, 10_000);
    const denial = { kind: 'permission', body: { ...about('2', asked), behavior: 'deny' } } as const;
    expect(await decide(pending, '2', denial)).toBeNull();
    expect((await other).kind).toBe('permission');
    expect(await decide(pending, '3', allow('3', asked))).toMatch(/no longer/);
    pending.cancelAll();
    expect(await one).toEqual({ kind: 'cancelled' });
  });

  test('refuses an answer with another digest and keeps waiting', async () => {
    const pending = new PermissionRequests('s');
    const asked = request('Bash', { command: 'ls' });
    const decision = pending.wait('1', asked, 10_000);
    const { body } = allow('1', asked);
    const others = [
      allow('1', request('Bash', { command: 'ls -la' })).body,
      allow('1', request('Write', { command: 'ls' })).body,
      { ...body, digest: allow('2', asked).body.digest },
      { ...body, openedPosition: '8' },
      { ...body, digest: body.digest.slice(1) },
    ];
    for (const other of others)
      expect(await decide(pending, '1', { kind: 'permission', body: other })).toMatch(
        /request has changed since it was answered/,
      );
    const unsaid = { requestId: '1', behavior: 'allow' } as const;
    expect(await decide(pending, '1', { kind: 'permission', body: unsaid })).toMatch(
      /does not name the answered request/,
    );
    expect(await decide(new PermissionRequests('t'), '1', allow('1', asked))).toMatch(/no longer/);
    expect(await decide(pending, '1', allow('1', request('Bash', { command: 'ls' })))).toBeNull();
    expect(resultOf(await decision, asked)).toEqual({ behavior: 'allow', updatedInput: { command: 'ls' } });
  });

  test('passes on changed input and answers with unusual names', async () => {
    const pending = new PermissionRequests('s');
    const own = JSON.parse('{"a":1,"__proto__":{"x":1}}') as Record<string, unknown>;
    const asked = request('Bash', { command: 'ls' });
    const decision = pending.wait('1', asked, 10_000);
    const { body } = allow('1', asked);
    await decide(pending, '1', { kind: 'permission', body: { ...body, updatedInput: own } });
    expect(JSON.stringify(resultOf(await decision, asked))).toContain('"updatedInput":{"a":1,"__proto__":{"x":1}}');
    const question = request('AskUserQuestion', { questions: [{ question: '__proto__' }] });
    const reply = pending.wait('2', question, 10_000);
    const answers = JSON.parse('{"__proto__":["A","B"]}') as Record<string, string[]>;
    await decide(pending, '2', { kind: 'question', body: { ...about('2', question), answers } });
    expect(JSON.stringify(resultOf(await reply, question))).toContain('"answers":{"__proto__":"A, B"}');
  });

  test('is answered once', async () => {
    const pending = new PermissionRequests('s');
    const asked = request('Bash', { command: 'ls' });
    const told: string[] = [];
    const decision = pending.wait('1', asked, 10_000, ({ kind }) => told.push(kind));
    expect(await decide(pending, '1', allow('1', asked))).toBeNull();
    expect(await decide(pending, '1', allow('1', asked))).toBe('it was already answered');
    const denial = { kind: 'permission', body: { ...about('1', asked), behavior: 'deny' } } as const;
    expect(await decide(pending, '1', denial)).toBe('it was already answered');
    expect(await decision).toMatchObject({ body: { behavior: 'allow' } });
    expect(told).toEqual(['permission']);
  });

  test('is cancelled when another request reuses its id', async () => {
    const pending = new PermissionRequests('s');
    const [first, second] = [request('Bash', { command: 'ls' }), request('Bash', { command: 'rm' })];
    const one = pending.wait('1', first, 10_000);
    const other = pending.wait('1', second, 10_000);
    expect(await one).toEqual({ kind: 'cancelled' });
    expect(await decide(pending, '1', allow('1', first))).toMatch(/request has changed since it was answered/);
    expect(await decide(pending, '1', allow('1', second))).toBeNull();
    expect(resultOf(await other, second)).toMatchObject({ updatedInput: { command: 'rm' } });
  });

  test('refuses the answer to an earlier request with the same content', async () => {
    const pending = new PermissionRequests('s');
    const asked = request('Bash', { command: 'ls' });
    const first = pending.wait('1', asked, 10_000);
    expect(await decide(pending, '1', allow('1', asked))).toBeNull();
    await first;
    const again = pending.wait('1', { ...asked }, 10_000);
    expect(await decide(pending, '1', allow('1', asked))).toBe('it was already answered');
    const body = { ...about('1', asked, '8'), behavior: 'deny' } as const;
    expect(await decide(pending, '1', { kind: 'permission', body })).toBeNull();
    expect(await again).toEqual({ kind: 'permission', body });
  });

  test('expires and lets the agent continue', async () => {
    const asked = request('Bash', { command: 'rm' });
    const decision = await new PermissionRequests('s').wait('1', asked, 1);
    expect(decision).toEqual({ kind: 'expired' });
    expect(resultOf(decision, asked)).toEqual({
      behavior: 'deny',
      message: expect.stringContaining('Nobody answered'),
    });
    expect(answerOf(decision)).toMatchObject({ outcome: 'expired' });
  });

  test('is cancelled when the agent withdraws it', async () => {
    const withdrawn = new AbortController();
    const decision = new PermissionRequests('s').wait('1', request('Bash', {}, { signal: withdrawn.signal }), 10_000);
    withdrawn.abort();
    expect(await decision).toEqual({ kind: 'cancelled' });
  });

  test('keys answers by question text, also when a header was named', () => {
    const body = { requestId: '1', answers: { Database: 'libSQL', 'Which extras?': ['search', 'sync'] } };
    expect(resultOf({ kind: 'question', body }, request('AskUserQuestion', questions))).toEqual({
      behavior: 'allow',
      updatedInput: { ...questions, answers: { 'Which database?': 'libSQL', 'Which extras?': 'search, sync' } },
    });
  });

  test('refuses a decision for a question and answers for a permission', async () => {
    const pending = new PermissionRequests('s');
    const [question, permission] = [request('AskUserQuestion', questions), request('Bash')];
    void pending.wait('q', question, 10_000);
    void pending.wait('p', permission, 10_000);
    expect(await decide(pending, 'q', allow('q', question))).toContain('answers');
    const answers = { kind: 'question', body: { ...about('p', permission), answers: {} } } as const;
    expect(await decide(pending, 'p', answers)).toContain('behavior');
    const denial = { kind: 'permission', body: { ...about('q', question), behavior: 'deny' } } as const;
    expect(await decide(pending, 'q', denial)).toBeNull();
    pending.cancelAll();
  });

  test('remembers the suggested rules unless the agent forbids it', () => {
    const suggestions = [{ type: 'addRules' }];
    const body = { requestId: '1', behavior: 'allow', remember: true } as const;
    const decide = (more: object) => resultOf({ kind: 'permission', body }, request('Bash', { command: 'ls' }, more));
    expect(decide({ suggestions })).toEqual({
      behavior: 'allow',
      updatedInput: { command: 'ls' },
      updatedPermissions: suggestions,
    });
    expect(decide({ suggestions, suppressAlwaysAllowRule: true })).not.toHaveProperty('updatedPermissions');
  });
});
