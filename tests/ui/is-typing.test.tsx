// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

afterEach(cleanup);

function Page({ onKey, children }: { onKey: (key: string) => void; children: React.ReactNode }) {
  const record = ({ key }: KeyboardEvent) => onKey(key === 'ArrowDown' ? '↓' : key);
  useShortcuts({ 'sessions.next': record, 'sessions.previous': record, 'inbox.next-request': record });
  return <div data-testid="box">{children}</div>;
}

/** Shortcut keys that act on a control. */
function keysOn(control: React.ReactNode): string {
  let pressed = '';
  const page = render(
    <Page
      onKey={(key) => {
        pressed += key;
      }}
    >
      {control}
    </Page>,
  );
  const target = screen.getByTestId('box').firstElementChild as Element;
  for (const key of ['j', 'k', 'r', 'ArrowDown']) fireEvent.keyDown(target, { key });
  page.unmount();
  return pressed;
}

it('shortcuts act on checkboxes and buttons', () => {
  expect(keysOn(<input type="checkbox" />)).toBe('jkr↓');
  expect(keysOn(<input type="button" />)).toBe('jkr↓');
  expect(keysOn(<button type="button" />)).toBe('jkr↓');
  // Arrows select the next radio button.
  expect(keysOn(<input type="radio" />)).toBe('jkr');
});

it('shortcuts ignore keys in fields, and arrows on radio buttons', () => {
  for (const field of [
    <input key="a" />,
    <input key="b" type="search" />,
    <input key="c" type="time" />,
    <textarea key="d" />,
    <select key="e" />,
  ]) {
    expect(keysOn(field)).toBe('');
  }
});
