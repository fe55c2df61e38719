// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { SettledButton } from '@/components/ui/misclick-guard';
import { layOut, settle } from './laid-out';

beforeEach(() => {
  vi.useFakeTimers();
  layOut();
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const settled = () => act(settle);
const press = () => fireEvent.click(screen.getByRole('button'));

describe('SettledButton', () => {
  it('accepts a press once it is settled', async () => {
    const onPress = vi.fn();
    render(<SettledButton {...{ of: 'task-1', onPress }}>Stop</SettledButton>);
    press();
    expect(onPress).not.toHaveBeenCalled();
    await settled();
    press();
    expect(onPress).toHaveBeenCalledTimes(1);
  });

  it('keeps the focus and ignores presses while it is disabled', async () => {
    const onPress = vi.fn();
    const { rerender } = render(<SettledButton {...{ of: 'task-1', onPress }}>Stop</SettledButton>);
    screen.getByRole('button').focus();
    rerender(<SettledButton {...{ of: 'task-1', onPress, disabled: true }}>Stop</SettledButton>);
    await settled();
    press();
    expect(onPress).not.toHaveBeenCalled();
    expect(screen.getByRole<HTMLButtonElement>('button').disabled).toBe(false);
    expect(document.activeElement).toBe(screen.getByRole('button'));
  });

  it('ignores a press right after its subject has changed', async () => {
    const onPress = vi.fn();
    const { rerender } = render(<SettledButton {...{ of: 'task-1', onPress }}>Stop</SettledButton>);
    await settled();
    rerender(<SettledButton {...{ of: 'task-2', onPress }}>Stop</SettledButton>);
    press();
    expect(onPress).not.toHaveBeenCalled();
  });
});

describe('ConfirmButton', () => {
  const show = (onPress: () => void) =>
    render(
      <ConfirmButton of="session-1" onPress={onPress} looks={['', '']}>
        {(isPressed) => (isPressed ? 'Really end it?' : 'End')}
      </ConfirmButton>,
    );

  it('acts on the second press', async () => {
    const onPress = vi.fn();
    show(onPress);
    await settled();
    press();
    expect([screen.getByRole('button').textContent, onPress.mock.calls.length]).toEqual(['Really end it?', 0]);
    await settled();
    press();
    expect(onPress).toHaveBeenCalledTimes(1);
  });

  it('ignores a second press right after the first', async () => {
    const onPress = vi.fn();
    show(onPress);
    await settled();
    press();
    press();
    expect(onPress).not.toHaveBeenCalled();
  });

  it('forgets the first press after a while', async () => {
    const onPress = vi.fn();
    show(onPress);
    await settled();
    press();
    await act(() => vi.advanceTimersByTimeAsync(5_000));
    expect(screen.getByRole('button').textContent).toBe('End');
    await settled();
    press();
    expect(onPress).not.toHaveBeenCalled();
  });
});
