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

describe('a settled button', () => {
  it('takes a press once it has stood for a while', async () => {
    const onPress = vi.fn();
    render(<SettledButton {...{ of: 'task-1', onPress }}>Stop</SettledButton>);
    press();
    expect(onPress).not.toHaveBeenCalled();
    await settled();
    press();
    expect(onPress).toHaveBeenCalledTimes(1);
  });

  it('takes no press that was meant for what stood there before', async () => {
    const onPress = vi.fn();
    const { rerender } = render(<SettledButton {...{ of: 'task-1', onPress }}>Stop</SettledButton>);
    await settled();
    rerender(<SettledButton {...{ of: 'task-2', onPress }}>Stop</SettledButton>);
    press();
    expect(onPress).not.toHaveBeenCalled();
  });
});

describe('a button to press twice', () => {
  const show = (onPress: () => void) =>
    render(
      <ConfirmButton of="session-1" onPress={onPress} looks={['', '']}>
        {(isPressed) => (isPressed ? 'Really end it?' : 'End')}
      </ConfirmButton>,
    );

  it('acts at the second press', async () => {
    const onPress = vi.fn();
    show(onPress);
    await settled();
    press();
    expect([screen.getByRole('button').textContent, onPress.mock.calls.length]).toEqual(['Really end it?', 0]);
    await settled();
    press();
    expect(onPress).toHaveBeenCalledTimes(1);
  });

  it('takes no second press that comes right behind the first', async () => {
    const onPress = vi.fn();
    show(onPress);
    await settled();
    press();
    press();
    expect(onPress).not.toHaveBeenCalled();
  });

  it('takes the first press back after a while', async () => {
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
