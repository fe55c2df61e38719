import { AppError } from '@interlude/protocol/errors';
import { describe, expect, test } from 'vitest';
import {
  interruptId,
  interruptOf,
  type PendingRequest,
  parseAnswer,
  parseInterruptId,
} from '@/lib/server/agui/interrupts';

const digest = 'ab'.repeat(32);
const permission: PendingRequest = {
  id: 'q1',
  kind: 'permission',
  title: 'Run make?',
  toolName: 'Bash',
  toolCallId: 'c1',
  input: { command: 'make' },
  options: [],
  digest,
  openedPosition: '7',
  expiresAt: 1_795_170_000_000,
};
const options = [
  { id: 'once', label: 'Once', kind: 'allow' as const },
  { id: 'never', label: 'Never', kind: 'deny' as const },
];
const question: PendingRequest = {
  ...permission,
  kind: 'question',
  input: { questions: [{ question: 'Which?' }, { question: 'When?' }] },
};
const resolved = (payload: unknown) => ({ interruptId: 'i', status: 'resolved' as const, payload });
const cancelled = { interruptId: 'i', status: 'cancelled' as const, payload: undefined };

describe('an interrupt', () => {
  test('has everything a person must see, and its deadline', () => {
    expect(interruptOf(permission)).toMatchObject({
      id: `q1@${digest.slice(0, 16)}`,
      reason: 'tool_call',
      message: 'Run make?',
      toolCallId: 'c1',
      expiresAt: '2026-11-20T10:20:00.000Z',
      metadata: { interlude: { requestId: 'q1', toolName: 'Bash', input: { command: 'make' }, digest } },
    });
  });

  test('has a schema of the decision, options or answers', () => {
    expect(interruptOf({ ...permission, options }).responseSchema).toMatchObject({
      properties: { approved: { type: 'boolean' }, optionId: { enum: ['once', 'never'] } },
    });
    const { responseSchema } = interruptOf(question);
    const { answers } = (responseSchema as { properties: { answers: { properties: object } } }).properties;
    expect(Object.keys(answers.properties)).toEqual(['Which?', 'When?']);
  });

  test('identifies one opening of its request', () => {
    for (const id of ['q1', 'a@b', '@', 'line\nbreak', `x@${'0'.repeat(16)}`]) {
      expect(parseInterruptId(interruptId({ id, digest }))).toEqual({ requestId: id, mark: digest.slice(0, 16) });
    }
    expect(parseInterruptId('q1')).toEqual({ requestId: 'q1', mark: null });
  });
});

describe('an answer', () => {
  test.each<[unknown, object]>([
    [true, { behavior: 'allow' }],
    [{ approved: true }, { behavior: 'allow' }],
    [
      { approved: false, message: 'not now' },
      { behavior: 'deny', message: 'not now' },
    ],
    [{ behavior: 'deny' }, { behavior: 'deny' }],
  ])('decides a permission: %j', (payload, decision) => {
    expect(parseAnswer(permission, resolved(payload))).toEqual({ ...decision, digest });
  });

  test('uses the behavior of its option', () => {
    const payload = { approved: true, optionId: 'never' };
    expect(parseAnswer({ ...permission, options }, resolved(payload))).toEqual({
      behavior: 'deny',
      optionId: 'never',
      digest,
    });
  });

  test('denies a permission when cancelled, and leaves a question unanswered', () => {
    expect(parseAnswer(permission, cancelled)).toMatchObject({ behavior: 'deny' });
    expect(parseAnswer(question, cancelled)).toBeNull();
  });

  test.each<[unknown, object]>([
    ['red', { 'Which?': 'red' }],
    [{ answer: 'red' }, { 'Which?': 'red' }],
    [{ answers: { 'Which?': ['a', 'b'], 'When?': 'now' } }, { 'Which?': ['a', 'b'], 'When?': 'now' }],
    [{ 'When?': 'now', other: 7 }, { 'When?': 'now' }],
  ])('answers a question: %j', (payload, answers) => {
    expect(parseAnswer(question, resolved(payload))).toEqual({ answers, digest });
  });

  test.each<[PendingRequest, unknown]>([
    [permission, undefined],
    [permission, 'yes'],
    [permission, { approved: 'true' }],
    [permission, { optionId: 'other' }],
    [question, undefined],
    [question, { answers: {} }],
    [question, 7],
  ])('without a decision is refused: %#', (asked, payload) => {
    expect(() => parseAnswer(asked, resolved(payload))).toThrow(AppError);
  });
});
