// @vitest-environment happy-dom

import { act } from '@testing-library/react';
import { hydrateRoot } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, expect, it, vi } from 'vitest';
import { claimStorage, setPerson, writeStored } from '@/components/ui/browser-storage';
import { NowProvider, TimeOfDay } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { localTimes } from '@/components/ui/local-times';
import { TIMES_KEY } from '@/components/ui/storage-key';

const now = new Date();
const times = [
  now.getTime(),
  new Date(now.getFullYear() - 1, 2, 5, 7, 4, 9).getTime(),
  // another day of this year
  new Date(now.getFullYear(), now.getMonth() === 0 ? 1 : 0, 3, 23, 59, 1).getTime(),
];

function Page() {
  return (
    <NowProvider renderedAt={Date.now()}>
      {times.map((at) => (
        <p key={at}>
          <TimeOfDay at={at} /> <TimeOfDay at={at} seconds /> <Moment at={at} /> <Moment at={at} seconds />
        </p>
      ))}
      <TimeOfDay at={8.7e15} />
    </NowProvider>
  );
}

afterEach(() => {
  localStorage.clear();
  document.body.innerHTML = '';
  setPerson(null);
});

it.each([
  ['24-hour', null, true, /^(\d{1,2} [A-Z][a-z]{2,3} (\d{4} )?)?\d\d:\d\d(:\d\d)?$/],
  ['12-hour', '{"hours":"12"}', true, /^(\d{1,2} [A-Z][a-z]{2,3} (\d{4} )?)?\d{1,2}:\d\d(:\d\d)? [ap]m$/],
  ['12-hour in another language', '{"hours":"12","language":"en-US"}', true, /^([A-Z][a-z]{2} \d.*)?\d:?\d.*[AP]M$/],
  ['24-hour with a language that does not exist', '{"hours":"12","language":"?"}', true, /^[^m]*\d\d:\d\d(:\d\d)?$/],
  ['24-hour in an embed', '{"hours":"12"}', false, /^[^m]*\d\d:\d\d(:\d\d)?$/],
])(
  'fills the server’s times before hydration with the text that hydration would show: %s',
  async (_, stored, isPersonal, pattern) => {
    claimStorage('ida');
    act(() => writeStored(TIMES_KEY, stored ?? ''));
    if (!isPersonal) setPerson(null);
    const root = document.createElement('div');
    document.body.append(root);
    root.innerHTML = renderToString(<Page />);
    expect(root.textContent).not.toMatch(/\d\d:\d\d/);
    new Function(localTimes(isPersonal))();
    dispatchEvent(new Event('DOMContentLoaded'));
    const words = () => [...root.querySelectorAll('p time')].map(({ textContent }) => textContent);
    const filled = words();
    expect(filled).toHaveLength(12);
    for (const text of filled) expect(text).toMatch(pattern);
    const onRecoverableError = vi.fn();
    const page = await act(async () => hydrateRoot(root, <Page />, { onRecoverableError }));
    expect(onRecoverableError).not.toHaveBeenCalled();
    expect(words()).toEqual(filled);
    act(() => page.unmount());
  },
);
