import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { DayLine, pauseHeight } from '@/components/transcript/turn-list';
import { NowProvider } from '@/components/ui/clock';
import { dayInWords, isOtherDay } from '@/components/ui/day';
import { timeFormat } from '@/components/ui/time-format';

/** Local time in any time zone. */
const at = (year: number, month: number, day: number, hour = 12, minute = 0) =>
  new Date(year, month - 1, day, hour, minute).getTime();

const formatDay = (time: number, now: number) => dayInWords(timeFormat(), time, now);

describe('a day in words', () => {
  it.each([
    [at(2026, 11, 22, 0, 0), 'Today'],
    [at(2026, 11, 22, 23, 59), 'Today'],
    [at(2026, 11, 21, 23, 59), 'Yesterday'],
    [at(2026, 11, 21, 0, 0), 'Yesterday'],
    [at(2026, 11, 20), 'Friday 20 November'],
    [at(2026, 1, 1), 'Thursday 1 January'],
    [at(2025, 11, 20), 'Thursday 20 November 2025'],
    [at(2026, 11, 23), 'Monday 23 November'],
  ])('at %i is %s', (time, words) => expect(formatDay(time, at(2026, 11, 22, 15))).toBe(words));

  it('returns Yesterday from midnight on, across years and clock changes', () => {
    expect(formatDay(at(2025, 12, 31, 23, 59), at(2026, 1, 1, 0, 1))).toBe('Yesterday');
    expect(formatDay(at(2026, 3, 28, 23, 30), at(2026, 3, 29, 23, 30))).toBe('Yesterday');
    expect(formatDay(at(2026, 10, 25, 0, 30), at(2026, 10, 26, 0, 0))).toBe('Yesterday');
  });

  it('isOtherDay compares calendar days, not hours', () => {
    expect(isOtherDay(at(2026, 11, 21, 23, 59), at(2026, 11, 22, 0, 0))).toBe(true);
    expect(isOtherDay(at(2026, 11, 22, 0, 0), at(2026, 11, 22, 23, 59))).toBe(false);
    expect(isOtherDay(at(2026, 11, 22), at(2025, 11, 22))).toBe(true);
    expect(isOtherDay(8.7e15, at(2026, 11, 22))).toBe(false);
  });
});

describe('the space before a turn', () => {
  const turn = (startedAt: number) => ({ startedAt });

  it('depends on the pause alone in every time zone', () => {
    expect(pauseHeight(turn(86_400_000), turn(0))).toBeGreaterThan(0);
    expect(pauseHeight(turn(3_600_000), turn(0))).toBe(0);
    expect(pauseHeight(turn(3_600_000), undefined)).toBe(0);
  });

  it('shows no day on the server, which does not know the time zone', () => {
    const markup = renderToStaticMarkup(
      <NowProvider renderedAt={at(2026, 11, 22)}>
        <DayLine turn={turn(at(2026, 11, 21))} before={turn(at(2026, 11, 19))} />
      </NowProvider>,
    );
    expect(markup).toBe('');
  });
});
