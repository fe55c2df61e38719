// @vitest-environment happy-dom

import { act } from '@testing-library/react';
import { hydrateRoot } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { expect, it, vi } from 'vitest';
import { NowProvider, TimeOfDay } from '@/components/ui/clock';
import { Moment } from '@/components/ui/day';
import { LOCAL_TIMES } from '@/components/ui/local-times';

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

it('fills the server’s times before hydration with the text that hydration would show', async () => {
  const root = document.createElement('div');
  document.body.append(root);
  root.innerHTML = renderToString(<Page />);
  expect(root.textContent).not.toMatch(/\d\d:\d\d/);
  new Function(LOCAL_TIMES)();
  dispatchEvent(new Event('DOMContentLoaded'));
  const words = () => [...root.querySelectorAll('p time')].map(({ textContent }) => textContent);
  const filled = words();
  expect(filled).toHaveLength(12);
  for (const text of filled) expect(text).toMatch(/^(\d{1,2} [A-Z][a-z]{2} (\d{4} )?)?\d\d:\d\d(:\d\d)?$/);
  const onRecoverableError = vi.fn();
  const page = await act(async () => hydrateRoot(root, <Page />, { onRecoverableError }));
  expect(onRecoverableError).not.toHaveBeenCalled();
  expect(words()).toEqual(filled);
  act(() => page.unmount());
});
