ALTER TABLE `sessions` ADD `listed_as` text;--> statement-breakpoint
CREATE INDEX `sessions_listed` ON `sessions` (`listed_as`,`last_event_at`,`id`) WHERE listed_as IS NOT NULL;--> statement-breakpoint
CREATE INDEX `inbox_open_by_owner` ON `inbox` (`session_id`,`agent_id`) WHERE done_at IS NULL;--> statement-breakpoint
UPDATE `sessions` SET `listed_as` = 'failed' WHERE `state` = 'exited' AND (
  `body`->>'$.observations.process.value.signal' IS NOT NULL
  OR ifnull(`body`->>'$.observations.process.value.code', 0) <> 0);--> statement-breakpoint
UPDATE `sessions` SET `listed_as` = 'lost' WHERE `state` = 'unknown'
  AND `body`->>'$.evidence.last' IN ('working', 'needs-input', 'waiting-on-background');
