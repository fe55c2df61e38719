/** Whether two times are on different days of the reader's own calendar; never where one of them is no time. */
export function isOtherDay(a: number, b: number): boolean {
  const [one, other] = [new Date(a), new Date(b)];
  if (Number.isNaN(one.getTime()) || Number.isNaN(other.getTime())) return false;
  return one.toDateString() !== other.toDateString();
}

/** A day of the reader's calendar: `Today`, `Yesterday`, `Friday 20 November`, `Friday 20 November 2025`. */
export function dayWords(at: number, now: number): string {
  const [day, today] = [new Date(at), new Date(now)];
  if (day.toDateString() === today.toDateString()) return 'Today';
  // Not a number of hours ago: days may have 23 or 25.
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (day.toDateString() === yesterday.toDateString()) return 'Yesterday';
  const words = `${nameOf(day, 'weekday')} ${day.getDate()} ${nameOf(day, 'month')}`;
  return day.getFullYear() === today.getFullYear() ? words : `${words} ${day.getFullYear()}`;
}

function nameOf(day: Date, part: 'weekday' | 'month'): string {
  return day.toLocaleDateString('en', { [part]: 'long' });
}

/** The same beside a time of day: nothing for today, `24 Nov`, `24 Nov 2025`. */
export function dateOf(at: number, now: number): string {
  const [day, today] = [new Date(at), new Date(now)];
  if (day.toDateString() === today.toDateString()) return '';
  const words = `${day.getDate()} ${day.toLocaleDateString('en', { month: 'short' })}`;
  return day.getFullYear() === today.getFullYear() ? words : `${words} ${day.getFullYear()}`;
}
