ALTER TABLE `agents` ADD `state` text;--> statement-breakpoint
ALTER TABLE `agents` ADD `is_retired` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `agents_by_state` ON `agents` (`is_retired`,`state`,`id`);--> statement-breakpoint
ALTER TABLE `sessions` ADD `grouped_as` text;--> statement-breakpoint
CREATE INDEX `sessions_grouped` ON `sessions` (`grouped_as`,`listed_as`,`state`,`agent_id`,`id`) WHERE grouped_as IS NOT NULL;--> statement-breakpoint
UPDATE `agents` SET `state` = `body` ->> '$.state', `is_retired` = `body` ->> '$.retiredAt' IS NOT NULL;--> statement-breakpoint
UPDATE `sessions` SET `grouped_as` = CASE
    WHEN `body` ->> '$.arrangement.archivedAt' IS NOT NULL THEN 'archived'
    WHEN ifnull(`listed_as`, `state`) IN ('failed', 'lost')
      AND `body` ->> '$.arrangement.seenState' IS NOT `body` ->> '$.stateSince' THEN NULL
    WHEN `body` ->> '$.arrangement.pinnedAt' IS NOT NULL AND `state` <> 'needs-input' THEN 'pinned'
    WHEN ifnull(`listed_as`, `state`) IN ('failed', 'lost') THEN 'seen' END
  WHERE `body` ->> '$.arrangement' IS NOT NULL;
