// @vitest-environment happy-dom
import { act, cleanup, render } from '@testing-library/react';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { changeTimes } from '@/components/settings/appearance-page';
import { setPerson, storageKey, writeStored } from '@/components/ui/browser-storage';
import { Ago, NowProvider, TimeOfDay } from '@/components/ui/clock';
import { CalendarDay, calendarDay, dayInWords, Moment } from '@/components/ui/day';
import { TimeFormat, type TimeSettings, timeFormat } from '@/components/ui/time-format';

const format = (settings: Partial<TimeSettings> = {}) =>
  new TimeFormat({ hours: '24', language: 'en-GB', isAbsolute: false, ...settings });
const at = (year: number, month: number, day: number, hour = 14, minute = 3, second = 21) =>
  new Date(year, month - 1, day, hour, minute, second).getTime();
/** Spaces differ between versions of ICU. */
const plain = (text: string | undefined | null) => text?.replace(/[\u202f\u00a0]/g, ' ');

const NOON = at(2026, 11, 22, 12, 0, 0);

beforeEach(() => {
  setPerson('grace');
  localStorage.clear();
  act(() => writeStored('times', ''));
});
afterEach(() => {
  cleanup();
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

describe('TimeFormat', () => {
  it('shows 24 or 12 hours', () => {
    const times = [at(2026, 11, 22, 0, 5), at(2026, 11, 22, 12, 5), at(2026, 11, 22, 14, 3)];
    expect(times.map((time) => format().time(time))).toEqual(['00:05', '12:05', '14:03']);
    const of12 = format({ hours: '12', language: 'en-US' });
    expect(times.map((time) => plain(of12.time(time)))).toEqual(['12:05 AM', '12:05 PM', '2:03 PM']);
    expect(plain(of12.time(times[2] as number, true))).toBe('2:03:21 PM');
    expect(format().time(times[2] as number, true)).toBe('14:03:21');
  });

  it('names days and months in the chosen language', () => {
    const day = at(2026, 1, 5);
    expect(dayInWords(format({ language: 'de' }), day, NOON)).toBe('Montag, 5. Januar');
    expect(dayInWords(format({ language: 'en-US' }), day, NOON)).toBe('Monday, January 5');
    expect(dayInWords(format({ language: 'es' }), NOON, NOON)).toBe('Hoy');
    expect(dayInWords(format({ language: 'ja' }), at(2026, 11, 21), NOON)).toBe('昨日');
    expect(calendarDay(format({ language: 'de' }), day)).toBe('5. Jan. 2026');
  });

  it('adds the year of other years, and no date today', () => {
    expect(format().date(NOON, NOON)).toBe('');
    expect(format().date(at(2026, 3, 4), NOON)).toBe('4 Mar');
    expect(format().date(at(2025, 3, 4), NOON)).toBe('4 Mar 2025');
    expect(format().full(at(2025, 3, 4))).toBe('Tuesday 4 March 2025, 14:03:21');
  });

  it('shows each hour once where clocks go forward, and both where they go back', () => {
    vi.stubEnv('TZ', 'Europe/Berlin');
    const of12 = format({ hours: '12', language: 'en-US' });
    const hourly = (from: number) => [0, 1, 2].map((hours) => from + hours * 3_600_000);
    expect(hourly(Date.UTC(2026, 2, 29, 0)).map((time) => format().time(time))).toEqual(['01:00', '03:00', '04:00']);
    expect(hourly(Date.UTC(2026, 9, 24, 23)).map((time) => plain(of12.time(time)))).toEqual([
      ...['1:00 AM', '2:00 AM', '2:00 AM'],
    ]);
    // the last hour of a day with 25 hours
    const evening = Date.UTC(2026, 9, 25, 22, 30);
    expect(dayInWords(format(), evening, evening + 3_600_000)).toBe('Yesterday');
  });

  it('follows a change of the time zone', () => {
    const kept = format({ hours: '12', language: 'en-US' });
    const time = Date.UTC(2026, 10, 22, 20, 30);
    vi.stubEnv('TZ', 'UTC');
    expect([plain(kept.time(time)), kept.date(time, 0)]).toEqual(['8:30 PM', 'Nov 22, 2026']);
    vi.stubEnv('TZ', 'Asia/Kolkata');
    expect([plain(kept.time(time)), kept.date(time, 0)]).toEqual(['2:00 AM', 'Nov 23, 2026']);
  });

  it('shows a dash for a date that the browser can’t represent', () => {
    const far = 8.7e15;
    expect([format().time(far), format().date(far, NOON), format().full(far)]).toEqual(['–', '–', '–, –']);
  });
});

function Page() {
  return (
    <NowProvider renderedAt={NOON}>
      <Ago at={NOON - 5 * 60_000} className="ago" />
      <Ago at={at(2026, 11, 20)} className="earlier" />
      <TimeOfDay at={at(2026, 11, 22)} className="time" />
      <Moment at={at(2026, 11, 20)} className="moment" />
      <CalendarDay at={at(2026, 11, 20)} />
    </NowProvider>
  );
}

describe('times on the page', () => {
  const shown = () => [...document.querySelectorAll('time')].map(({ textContent }) => plain(textContent));

  it('change at once with the settings, in this tab and in others', () => {
    vi.useFakeTimers({ now: NOON });
    render(<Page />);
    expect(shown()).toEqual(['5 min', '1 d', '14:03', '20 Nov 14:03', '20 Nov 2026']);
    act(() => changeTimes({ hours: '12', isAbsolute: true }));
    expect(shown()).toEqual(['11:55 am', '20 Nov', '2:03 pm', '20 Nov 2:03 pm', '20 Nov 2026']);
    act(() => {
      localStorage.setItem(storageKey('times'), JSON.stringify({ hours: '24', language: 'de' }));
      dispatchEvent(new StorageEvent('storage'));
    });
    expect(shown()).toEqual(['5 min', '1 d', '14:03', '20. Nov. 14:03', '20. Nov. 2026']);
    const [time] = document.getElementsByClassName('time');
    expect([time?.getAttribute('lang'), time?.getAttribute('title')]).toEqual([
      'de',
      'Sonntag, 22. November 2026, 14:03:21',
    ]);
  });

  it('are left out on the server, which doesn’t know the reader’s choice', () => {
    changeTimes({ hours: '12' });
    const markup = renderToString(<Page />);
    expect(markup).not.toContain('title=');
    expect(markup.replace(/<[^>]*>/g, ' ')).not.toMatch(/\d:\d|Nov/);
  });

  it('ignore settings that they can’t read', () => {
    for (const broken of ['{', 'null', '{"hours":"7","language":"not a tag"}', '{"language":7}']) {
      writeStored('times', broken);
      expect(timeFormat().settings).toEqual({ hours: '24', language: 'en-GB', isAbsolute: false });
    }
  });
});
