'use client';

import { useState } from 'react';
import { ConfirmButton as PressTwice } from '@/components/ui/confirm-button';

/** An action in progress, and the reason the last one failed. */
export function useAct() {
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const act = async (work: () => Promise<unknown>) => {
    setSending(true);
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure((error as Error).message);
    }
    setSending(false);
  };
  return { isSending, failure, act };
}

/**
 * A button for actions that are hard to undo: it acts on the second press, and shows why it failed.
 *
 * @param of subject of the action; a new subject starts again at the first press
 */
export function ConfirmAction(props: { of: string; word: string; name: string; onConfirm: () => Promise<unknown> }) {
  const { of, word, name, onConfirm } = props;
  const { isSending, failure, act } = useAct();
  return (
    <>
      <PressTwice
        of={of}
        onPress={() => void act(onConfirm)}
        disabled={isSending}
        label={(isPressed) => (isPressed ? `${word} ${name}: sure?` : `${word} ${name}`)}
        className="min-h-6 min-w-6 whitespace-nowrap pointer-coarse:min-h-11 pointer-coarse:min-w-11 pointer-coarse:text-right underline-offset-2"
        looks={['text-ink-2 decoration-line-strong hover:text-failed', 'font-medium text-failed']}
      >
        {(isPressed) => (isSending ? `${word}…` : isPressed ? `${word}, sure?` : word)}
      </PressTwice>
      <span role="alert" className="block text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}
