import type { Obligation } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { outboxFacts } from '@/components/agents/board-agent';
import { FleetStore } from '@/components/live/fleet-store';
import { openObligationsIn } from '@/components/obligations/use-obligations';
import { answersOf, displayable, isLonger, questionsOf } from '@/components/requests/question-answer';
import { explicitReplies } from '@/components/transcript/reply-link';
import { aMessage } from './rows';

describe('a question', () => {
  const input = {
    questions: [
      { question: 'Which?', options: [{ label: 'A', description: 'the first' }, 'B', 7], multiSelect: true },
      { header: 'no question' },
      { question: 'Why?' },
    ],
  };

  it('has the options of its input, without invalid ones', () => {
    expect(questionsOf({ title: 't', input })).toEqual([
      {
        text: 'Which?',
        header: null,
        options: [
          { label: 'A', description: 'the first' },
          { label: 'B', description: null },
        ],
        multiSelect: true,
      },
      { text: 'Why?', header: null, options: [], multiSelect: false },
    ]);
  });

  it('is free text if its input has another format', () => {
    for (const other of [null, 'text', [], { questions: 'x' }, { questions: [] }]) {
      expect(questionsOf({ title: 'Go on?', input: other })).toMatchObject([{ text: 'Go on?', options: [] }]);
    }
  });

  it('is shown as far as the limits allow', () => {
    const options = Array.from({ length: 9 }, (_, index) => ({ label: `${index}`, description: null }));
    const question = { text: 'Which?', header: null, options, multiSelect: false };
    expect(displayable(Array(20).fill(question))).toHaveLength(20);
    expect(displayable(Array(900).fill(question))).toHaveLength(20);
    expect(isLonger([question], 6)).toBe(false);
    expect(isLonger([question, { ...question, text: 'x'.repeat(10_001) }], 10_000)).toBe(true);
    expect(isLonger([{ ...question, options: [{ label: 'a', description: 'long' }] }], 3)).toBe(true);
  });

  it('is answered once every part is', () => {
    const questions = questionsOf({ title: 't', input });
    expect(answersOf(questions, [{ labels: ['A'], other: '' }])).toBeNull();
    const whole = [
      { labels: ['A'], other: ' more ' },
      { labels: [], other: 'because' },
    ];
    expect(answersOf(questions, whole)).toEqual({ 'Which?': ['A', 'more'], 'Why?': 'because' });
  });
});

describe('a reply', () => {
  const user = (id: string) => aMessage({ id, role: 'user' });
  const answer = (...replyTo: string[]) => aMessage({ id: 'a', replyTo });

  it('has no link to the message right before it', () => {
    expect(explicitReplies([user('u1'), user('u2'), answer('u1', 'u2')], 2)).toBe('');
  });

  it('has one link, even if several texts answer the same message', () => {
    expect(explicitReplies([answer('u0'), answer('u0')], 1)).toBe('');
    expect(explicitReplies([answer('u0'), answer('u0')], 0)).toBe('u0');
  });

  it('links to an earlier message', () => {
    expect(explicitReplies([user('u1'), aMessage({ id: 'a1' }), answer('u1')], 2)).toBe('u1');
    expect(explicitReplies([user('u2'), answer('u1', 'u2')], 1)).toBe('u1');
  });
});

describe('pending replies', () => {
  const row = (messageId: string, state: Obligation['state'], position: string) =>
    ({
      messageId,
      sessionId: 's',
      agentId: 'a',
      state,
      position,
      from: { kind: 'person', id: 'p' },
      text: '',
      sentAt: 1,
    }) as Obligation;

  it('leave the list when answered or waived, and join at the end', () => {
    const fleet = new FleetStore();
    let position = 11;
    const take = (...rows: Obligation[]) =>
      fleet.applyFrames(rows.map((data) => ({ event: 'obligation', id: String(++position), data })));
    const openIds = () =>
      openObligationsIn(fleet.obligations.list('a')?.rows ?? [], 's').map(({ messageId }) => messageId);
    fleet.putObligations('a', { position: '11', obligations: [] });
    take(row('m2', 'owed', '11'), row('m1', 'owed', '9'));
    expect(openIds()).toEqual(['m1', 'm2']);
    take(row('m1', 'answered', '9'), row('m3', 'owed', '12'));
    expect(openIds()).toEqual(['m2', 'm3']);
    take(row('m2', 'waived', '11'), row('m3', 'answered', '12'));
    expect(openIds()).toEqual([]);
  });
});

describe('a runner’s outbox', () => {
  it('is shown as reported, and hidden without a report', () => {
    expect(outboxFacts({ outbox: { depth: 2, oldestAgeMs: 900, poisoned: 1, lost: 0 } })).toEqual({
      depth: 2,
      oldestAgeMs: 900,
      poisoned: 1,
      lost: 0,
    });
    expect([outboxFacts(null), outboxFacts({}), outboxFacts({ outbox: 'full' }), outboxFacts({ outbox: {} })]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
});
