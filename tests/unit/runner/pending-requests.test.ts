import { describe, expect, test } from 'vitest';
import { answerOf, type PendingRequest, PendingRequests, resultOf } from '@/lib/runner/sources/claude/pending-requests';

function request(tool: string, input: Record<string, unknown> = {}, more: object = {}): PendingRequest {
  return { tool, input, context: { signal: new AbortController().signal, ...more } };
}

const questions = {
  questions: [
    { question: 'Which database?', header: 'Database', options: [{ label: 'libSQL' }, { label: 'Postgres' }] },
    { question: 'Which extras?', header: 'Extras', multiSelect: true, options: [] },
  ],
};

describe('what the agent waits for people to say', () => {
  test('a decision is given to the request it names, and to no other', async () => {
    const pending = new PendingRequests();
    const one = pending.wait('1', request('Bash'), 10_000);
    const other = pending.wait('2', request('Bash'), 10_000);
    expect(pending.decide('2', { kind: 'permission', said: { requestId: '2', behavior: 'deny' } })).toBeNull();
    expect((await other).kind).toBe('permission');
    expect(pending.decide('2', { kind: 'permission', said: { requestId: '2', behavior: 'allow' } })).toMatch(
      /any more/,
    );
    pending.cancelAll();
    expect(await one).toEqual({ kind: 'cancelled' });
  });

  test('nobody answers: the agent is told to go on without it', async () => {
    const asked = request('Bash', { command: 'rm' });
    const decision = await new PendingRequests().wait('1', asked, 1);
    expect(decision).toEqual({ kind: 'expired' });
    expect(resultOf(decision, asked)).toEqual({
      behavior: 'deny',
      message: expect.stringContaining('Nobody answered'),
    });
    expect(answerOf(decision)).toMatchObject({ outcome: 'expired' });
  });

  test('a request that the agent withdraws is cancelled', async () => {
    const withdrawn = new AbortController();
    const decision = new PendingRequests().wait('1', request('Bash', {}, { signal: withdrawn.signal }), 10_000);
    withdrawn.abort();
    expect(await decision).toEqual({ kind: 'cancelled' });
  });

  test('answers go by the text of their questions, also where people named the header', () => {
    const said = { requestId: '1', answers: { Database: 'libSQL', 'Which extras?': ['search', 'sync'] } };
    expect(resultOf({ kind: 'question', said }, request('AskUserQuestion', questions))).toEqual({
      behavior: 'allow',
      updatedInput: { ...questions, answers: { 'Which database?': 'libSQL', 'Which extras?': 'search, sync' } },
    });
  });

  test('a question is not allowed but answered, and a permission not answered but decided', () => {
    const pending = new PendingRequests();
    void pending.wait('q', request('AskUserQuestion', questions), 10_000);
    void pending.wait('p', request('Bash'), 10_000);
    expect(pending.decide('q', { kind: 'permission', said: { requestId: 'q', behavior: 'allow' } })).toContain(
      'answers',
    );
    expect(pending.decide('p', { kind: 'question', said: { requestId: 'p', answers: {} } })).toContain('behavior');
    expect(pending.decide('q', { kind: 'permission', said: { requestId: 'q', behavior: 'deny' } })).toBeNull();
    pending.cancelAll();
  });

  test('what is to be remembered are the rules the agent suggested, unless it may not be', () => {
    const suggestions = [{ type: 'addRules' }];
    const said = { requestId: '1', behavior: 'allow', remember: true } as const;
    const decide = (more: object) => resultOf({ kind: 'permission', said }, request('Bash', { command: 'ls' }, more));
    expect(decide({ suggestions })).toEqual({
      behavior: 'allow',
      updatedInput: { command: 'ls' },
      updatedPermissions: suggestions,
    });
    expect(decide({ suggestions, suppressAlwaysAllowRule: true })).not.toHaveProperty('updatedPermissions');
  });
});
