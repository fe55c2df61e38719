'use client';

import { type ReactNode, useState } from 'react';
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
} from '@/components/inbox/notices';
import { useHydrated } from '@/components/ui/clock';
import { Phrase } from '@/components/ui/name';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';
import { Section } from './fact-table';
import { Setting } from './setting';

const NIGHT = { from: '22:00', to: '07:00' };

/** Settings of desktop notifications. The browser asks for permission only after a press. */
export function NoticePanel() {
  return (
    <Section
      title="Notifications"
      about="Desktop notifications of this browser, shown once for all tabs while the dashboard is open."
    >
      {useHydrated() && <Notices />}
    </Section>
  );
}

const BUTTON = 'h-8 rounded-md border border-line-strong px-3 hover:bg-raised pointer-coarse:h-11';

function Notices() {
  const [stored, store] = useStoredAnywhere(SETTINGS_KEY);
  const [refusal, setRefusal] = useStoredAnywhere(REFUSAL_KEY);
  const settings = noticeSettings(stored);
  const [permission, setPermission] = useState(() => (canNotify() ? Notification.permission : null));
  const keep = (change: Partial<NoticeSettings>) => store(storedNotices({ ...settings, ...change }));
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
  const { off, quiet } = settings;
  const isOn = settings.isOn && permission === 'granted';
  let state: ReactNode = isOn ? 'On.' : 'Off.';
  if (permission === null) {
    state =
      'Notifications aren’t available here. They need a browser that supports them and an https or 127.0.0.1 address.';
  } else if (permission === 'denied') {
    state = 'Notifications are blocked for this page. Allow them in the browser’s settings for this site.';
  } else if (refusal && !isOn) {
    state = (
      <>
        This browser can’t show notifications: <Phrase text={refusal} />
      </>
    );
  }
  return (
    <>
      <Setting id="desktop" name="Desktop notifications" about={state}>
        {isOn ? (
          <button type="button" onClick={() => keep({ isOn: false })} className={BUTTON}>
            Turn off
          </button>
        ) : (
          permission !== null &&
          permission !== 'denied' && (
            <button type="button" onClick={() => void turnOn()} className={BUTTON}>
              {refusal ? 'Try again' : 'Turn on desktop notifications'}
            </button>
          )
        )}
      </Setting>
      <Setting id="kinds" name="Notify about">
        <fieldset disabled={!isOn} aria-labelledby="kinds-name" className="flex max-w-md flex-wrap gap-x-5 gap-y-1">
          {NOTICE_KINDS.map((kind) => (
            <label key={kind} className={CHECK}>
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
      </Setting>
      <Setting
        id="quiet"
        name="Quiet hours"
        about="No notifications during this time. Items still arrive in the inbox."
      >
        <fieldset disabled={!isOn} aria-labelledby="quiet-name" className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <label className={CHECK}>
            <input
              type="checkbox"
              aria-labelledby="quiet-name"
              checked={quiet !== null}
              onChange={({ target }) => keep({ quiet: target.checked ? NIGHT : null })}
              className="accent-ink"
            />
          </label>
          {quiet !== null && (
            <>
              <TimeField label="from" value={quiet.from} onChange={(from) => keep({ quiet: { ...quiet, from } })} />
              <TimeField label="to" value={quiet.to} onChange={(to) => keep({ quiet: { ...quiet, to } })} />
            </>
          )}
        </fieldset>
      </Setting>
    </>
  );
}

const CHECK = 'flex min-h-6 min-w-6 items-center gap-1.5 text-ink-2 has-disabled:text-ink-3 pointer-coarse:min-h-11';

function TimeField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <label className={CHECK}>
      {label}
      <input
        type="time"
        value={value}
        onChange={({ target }) => target.value !== '' && onChange(target.value)}
        className="h-8 rounded-md border border-line-strong bg-ground px-2 pointer-coarse:h-11"
      />
    </label>
  );
}
