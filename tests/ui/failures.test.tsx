import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, test } from 'vitest';
import { unseenOf } from '@/components/agents/seen-while-shown';
import { SessionRow } from '@/components/sessions/session-row';
import { anInsight, aSession } from './rows';

const insight = (position: string, seenAt: number | null = null) => anInsight({ position, seenAt });

describe('a session in the list', () => {
  test.each([
    [0, 0, null],
    [1, 0, 'hook failed'],
    [12, 0, '12 hooks failed'],
    [1, 1, '1 failure'],
    [3, 1, '3 failures'],
  ])('with %i unseen failures, %i not from hooks, shows %j', (insightCount, otherFailureCount, words) => {
    const session = aSession({ insightCount, otherFailureCount });
    const html = renderToStaticMarkup(<SessionRow session={session} current={false} />);
    if (words === null) expect(html).not.toMatch(/fail(ed|ure)/);
    else expect(html).toContain(`>${words}<`);
  });
});

test('orders unseen failures by position', () => {
  const all = [insight('100'), insight('99'), insight('20', 5_000), insight('9')];
  expect(unseenOf(all).map(({ position }) => position)).toEqual(['9', '99', '100']);
});
