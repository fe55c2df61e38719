'use client';

import { useState } from 'react';
import { Words } from '@/components/ui/name';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';
import {
  canNotify,
  NOTICE_KINDS,
  NOTICE_WORD,
  type NoticeSettings,
  noteRefusal,
  noticeSettings,
  REFUSAL_KEY,
  SETTINGS_KEY,
  storedNotices,
} from './notices';

const NIGHT = { from: '22:00', to: '07:00' };

/** Settings of desktop notifications. The browser asks for permission only after a press. */
export function NoticePanel() {
  const [stored, store] = useStoredAnywhere(SETTINGS_KEY);
  const [refusal, setRefusal] = useStoredAnywhere(REFUSAL_KEY);
  const settings = noticeSettings(stored);
  const [permission, setPermission] = useState(() => (canNotify() ? Notification.permission : null));
  const keep = (change: Partial<NoticeSettings>) => store(storedNotices({ ...settings, ...change }));
  if (permission === null) {
    return (
      <p className="max-w-prose py-2 text-ink-2 text-xs">
        Notifications aren’t available here. They need a browser that supports them and an https or 127.0.0.1 address.
      </p>
    );
  }
  const turnOn = async () => {
    try {
      // Throws in browsers that never show page notifications; shows nothing before permission.
      if (permission !== 'granted') new Notification('').close();
      const result = permission === 'granted' ? permission : await Notification.requestPermission();
      setPermission(result);
      setRefusal('');
      if (result === 'granted') keep({ isOn: true });
    } catch (error) {
      noteRefusal(error);
    }
  };
  const { isOn, off, quiet } = settings;
  if (!isOn || permission !== 'granted') {
    return (
      <p className="flex max-w-prose flex-wrap items-baseline gap-x-3 gap-y-1 py-2 text-ink-2 text-xs">
        {refusal && (
          <span>
            This browser can’t show notifications: <Words text={refusal} />
          </span>
        )}
        {permission === 'denied' ? (
          'Notifications are blocked for this page. Allow them in the browser’s settings for this site.'
        ) : (
          <button
            type="button"
            onClick={() => void turnOn()}
            className="min-h-6 font-medium text-ink underline decoration-line-strong underline-offset-2 hover:text-accent"
          >
            {refusal ? 'Try again' : 'Turn on desktop notifications'}
          </button>
        )}
      </p>
    );
  }
  return (
    <div className="flex flex-col gap-2 py-2 text-xs">
      <fieldset className="flex flex-wrap gap-x-4 gap-y-1">
        <legend className="pb-1 text-ink-3">Notify about</legend>
        {NOTICE_KINDS.map((kind) => (
          <label key={kind} className="flex min-h-6 items-center gap-1.5 text-ink-2">
            <input
              type="checkbox"
              checked={!off.includes(kind)}
              onChange={({ target }) =>
                keep({ off: NOTICE_KINDS.filter((one) => (one === kind ? !target.checked : off.includes(one))) })
              }
              className="accent-ink"
            />
            {NOTICE_WORD[kind]}
          </label>
        ))}
      </fieldset>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-ink-2">
        <label className="flex min-h-6 items-center gap-1.5">
          <input
            type="checkbox"
            checked={quiet !== null}
            onChange={({ target }) => keep({ quiet: target.checked ? NIGHT : null })}
            className="accent-ink"
          />
          Quiet hours
        </label>
        {quiet !== null && (
          <>
            <TimeField label="from" value={quiet.from} onChange={(from) => keep({ quiet: { ...quiet, from } })} />
            <TimeField label="to" value={quiet.to} onChange={(to) => keep({ quiet: { ...quiet, to } })} />
          </>
        )}
        <button
          type="button"
          onClick={() => keep({ isOn: false })}
          className="min-h-6 underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Turn off
        </button>
      </div>
    </div>
  );
}

function TimeField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label className="flex min-h-6 items-center gap-1.5">
      {label}
      <input
        type="time"
        value={value}
        onChange={({ target }) => target.value !== '' && onChange(target.value)}
        className="h-6 rounded border border-line bg-ground px-1"
      />
    </label>
  );
}
