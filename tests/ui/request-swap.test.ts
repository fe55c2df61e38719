import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { findRequest, nextPinned, openRequests } from '@/components/requests/pinned-requests';
import { answersOf, hasDuplicates, questionsOf } from '@/components/requests/question-answer';
import { closedText, requestKey } from '@/components/requests/request-answer';
import { RequestBoard } from '@/components/requests/request-board';
import { aRequest, aTurn } from './rows';

const a = aRequest();
const b = aRequest({ id: 'b', position: '2', digest: 'd2' });
const reader = { hasFocus: false, isSettled: true, hasNotice: false };

describe('the pinned request', () => {
  it('is the oldest one out of sight, and stays once it is settled', () => {
    expect(nextPinned({ ...reader, current: b, hidden: [a, b], isSettled: false })).toBe(a);
    expect(nextPinned({ ...reader, current: null, hidden: [a, b] })).toBe(a);
    expect(nextPinned({ ...reader, current: b, hidden: [a, b] })).toBe(b);
  });

  it('stays while it has the focus, even if its card is in sight', () => {
    expect(nextPinned({ ...reader, current: a, hidden: [b], hasFocus: true })).toBe(a);
    expect(nextPinned({ ...reader, current: b, hidden: [a, b], hasFocus: true, isSettled: false })).toBe(b);
    expect(nextPinned({ ...reader, current: a, hidden: [b] })).toBe(b);
  });

  it('stays when closed elsewhere, and disappears when answered here', () => {
    const gone = { ...a, outcome: 'cancelled' as const };
    expect(nextPinned({ ...reader, current: gone, hidden: [b], hasNotice: true })).toBe(gone);
    expect(nextPinned({ ...reader, current: gone, hidden: [b], hasFocus: true })).toBe(b);
    expect(nextPinned({ ...reader, current: gone, hidden: [] })).toBeNull();
  });

  it('shows that nothing was sent when closed elsewhere', () => {
    expect(closedText({ outcome: 'cancelled' }, null)).toBe('Withdrawn. Nothing was sent.');
    expect(closedText({ outcome: 'allowed' }, { kind: 'failed', reason: 'too late' })).toBe(
      'Allowed elsewhere. Nothing was sent.',
    );
    expect(closedText({ outcome: 'allowed' }, { kind: 'accepted', commandId: 'c' })).toBeNull();
    expect(closedText({ outcome: null }, null)).toBeNull();
  });
});

describe('a request', () => {
  it('has a new key when it reopens at another position or for another input', () => {
    const again = [aRequest({ digest: 'd9' }), aRequest({ position: '9' })];
    for (const other of again) expect(requestKey(other)).not.toBe(requestKey(a));
    expect(requestKey(aRequest({ outcome: 'allowed' }))).toBe(requestKey(a));
  });

  it('is found by key, even if another one has the same id', () => {
    const now = { ...a, outcome: 'denied' as const };
    const turns = [aTurn({ items: [now] }), aTurn({ id: 'r2', items: [aRequest({ position: '9' })] })];
    expect(findRequest(turns, a)).toBe(now);
    expect(findRequest(turns, b)).toBeNull();
    expect(openRequests(turns, 1).map(({ position }) => position)).toEqual(['9']);
  });

  it('is found even if the count of open ones is out of date', () => {
    expect(openRequests([aTurn({ items: [a, b] })], 1)).toEqual([a, b]);
    expect(openRequests([aTurn({ items: [a, b] })], 0)).toEqual([]);
  });

  it('has its own draft and read mark', () => {
    const board = new RequestBoard();
    board.change(requestKey(a), { choices: [{ labels: [], other: 'main' }] });
    board.change(requestKey(a), { reason: 'no' });
    board.markRead(requestKey(a));
    expect(board.draftOf(requestKey(a))).toEqual({ reason: 'no', choices: [{ labels: [], other: 'main' }] });
    for (const other of [b, aRequest({ digest: 'd9' })]) {
      expect(board.draftOf(requestKey(other))).toEqual({ reason: null, choices: [] });
      expect(board.isRead(requestKey(other))).toBe(false);
    }
  });

  it.each([
    [[true, false], false],
    [[false, true], true],
  ])('has the visibility of the last of several entries: %j', (looks, visible) => {
    let tell = (_: object[]) => {};
    vi.stubGlobal(
      'IntersectionObserver',
      class {
        constructor(listener: typeof tell) {
          tell = listener;
        }
        observe() {}
        disconnect() {}
      },
    );
    onTestFinished(() => void vi.unstubAllGlobals());
    const board = new RequestBoard();
    const card = {} as Element;
    board.watch('a', card);
    tell(looks.map((isIntersecting) => ({ target: card, isIntersecting })));
    expect(board.visible.has('a')).toBe(visible);
  });
});

describe('an answer', () => {
  it('is sent for any question text', () => {
    const input = { questions: [{ question: '__proto__', options: [{ label: 'a\u202eb' }] }] };
    const questions = questionsOf({ title: 't', input });
    const answers = answersOf(questions, [{ labels: ['a\u202eb'], other: '' }]);
    expect(JSON.stringify(answers)).toBe('{"__proto__":"a\u202eb"}');
  });

  it('is not sent when two questions have the same text', () => {
    const questions = questionsOf({
      title: 't',
      input: { questions: [{ question: 'Which?' }, { question: 'Which?' }] },
    });
    expect(hasDuplicates(questions)).toBe(true);
    const choice = { labels: [], other: 'this' };
    expect(answersOf(questions, [choice, choice])).toBeNull();
  });
});
