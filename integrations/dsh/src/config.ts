/**
 * The settings: 000's two, 001's, all 13 of 002, and ours. Read once when the plugin is loaded; whatever is wrong is
 * refused there with a message that names the key (002-48).
 */

import { placeOf } from './home.ts'

/** Tools that change files, as 002 names them. */
export const MUTATION_TOOLS = ['bash', 'write', 'edit', 'str_replace_editor', 'pwsh', 'terminal_send'] as const

export interface Config {
  /** 002: false registers nothing at all. */
  readonly enabled: boolean
  /** 000 and 002 (`snapshotDir`): where points are kept, absolute; nothing: rwd's own default. */
  readonly dataDir: string | undefined
  /** 000: untracked files of this size and above are left out of points. */
  readonly untrackedFileMaxBytes: number | undefined
  /** 002: `git` refuses outside git worktrees. */
  readonly provider: 'auto' | 'git' | 'copy'
  /** 002: points of the kinds that `/rewind` lists, kept per session. */
  readonly maxSnapshots: number
  /** 002: soft quota over everything stored. */
  readonly maxSnapshotBytes: number
  /** 002: retention runs at the end of a turn too, not only from time to time. */
  readonly pruneOnTurnEnd: boolean
  /** 002: tools that change files. `undefined`: its list, and every tool that is not known to only read. */
  readonly mutationTools: readonly string[] | undefined
  /** 002: never captured outside git worktrees. `undefined`: the default list. */
  readonly excludeGlobs: readonly string[] | undefined
  /** 002: who is asked. */
  readonly confirmVia: 'auto' | 'userQuestions' | 'approval'
  /** 002: so many points in a list. */
  readonly listLimit: number
  /** 002: what a restore does about content that cannot be guarded. */
  readonly preRewindCheckpoint: 'warn' | 'require' | 'off'
  /** 002: compare content, not stamps. */
  readonly verifyByHash: boolean
  /** 002 from 0.5: points at the start of steps. */
  readonly autoCheckpoint: { readonly enabled: boolean; readonly intervalMinutes: number }
  /** 001: name of the tool that marks. */
  readonly toolName: string
  /** 001: language of a report. */
  readonly reportLanguage: 'en' | 'zh'
  /** 001: route of the report's request; both or neither. */
  readonly reportProvider: string | undefined
  readonly reportModel: string | undefined
  readonly reportMaxTokens: number
  readonly reportRetries: number
  /** 003: lines of ours in `.dsh/memory/checkpoints.md`. */
  readonly namedPointLimit: number
  /** 004: flush barriers. `auto`: only where the host mounts none. */
  readonly barriers: 'auto' | 'on' | 'off'
  /** Whether `checkpoint_restore` may run without asking (000's contract: it may). */
  readonly mayRestore: 'allow' | 'ask' | 'never'
  /** Whether a mutating tool may run when its point could not be made. */
  readonly onCaptureFailure: 'allow' | 'block'
  /** How long a tool waits for its point. */
  readonly captureDeadlineMs: number
  /** 002's old rule: cut at the end of the point's own turn. */
  readonly boundary: 'before' | 'after'
}

export class ConfigError extends Error {
  readonly code = 'BAD_CONFIG'
  readonly key: string
  constructor(key: string, why: string) {
    super(`rwd: BAD_CONFIG: ${key} ${why}`)
    this.name = 'ConfigError'
    this.key = key
  }
}

type Read<T> = (value: unknown, key: string) => T

const fail = (key: string, wants: string, got: unknown): never => {
  throw new ConfigError(key, `must be ${wants}, not ${JSON.stringify(got) ?? String(got)}`)
}

const flag: Read<boolean> = (value, key) => (typeof value === 'boolean' ? value : fail(key, 'true or false', value))

const text: Read<string> = (value, key) =>
  typeof value === 'string' && value.trim() !== '' ? value : fail(key, 'a text that is not blank', value)

const texts: Read<readonly string[]> = (value, key) =>
  Array.isArray(value) && value.every(item => typeof item === 'string')
    ? (value as string[]).filter(item => item.trim() !== '')
    : fail(key, 'a list of texts', value)

const whole =
  (least: number, most = Number.MAX_SAFE_INTEGER): Read<number> =>
  (value, key) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
      ? (value as number)
      : fail(key, most === Number.MAX_SAFE_INTEGER ? `a whole number from ${least} on` : `a whole number from ${least} to ${most}`, value)

const positive: Read<number> = (value, key) =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : fail(key, 'a finite number above 0', value)

const choice =
  <T extends string>(...choices: readonly T[]): Read<T> =>
  (value, key) =>
    choices.includes(value as T) ? (value as T) : fail(key, `one of ${choices.join(', ')}`, value)

const identifier: Read<string> = (value, key) =>
  typeof value === 'string' && /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/.test(value)
    ? value
    : fail(key, 'a name of letters, digits, - and _ that begins with a letter', value)

const auto: Read<Config['autoCheckpoint']> = (value, key) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) fail(key, 'an object', value)
  const inner = readAll(value as Record<string, unknown>, AUTO_KEYS, `${key}.`)
  return { enabled: true, intervalMinutes: 0, ...inner } as Config['autoCheckpoint']
}

const AUTO_KEYS = { enabled: flag, intervalMinutes: whole(0, 10_080) }

const KEYS = {
  enabled: flag,
  dataDir: text,
  untrackedFileMaxBytes: positive,
  provider: choice('auto', 'git', 'copy'),
  gitBin: text,
  snapshotDir: text,
  maxSnapshots: whole(1),
  maxSnapshotBytes: whole(1024),
  pruneOnTurnEnd: flag,
  mutationTools: texts,
  excludeGlobs: texts,
  confirmVia: choice('auto', 'userQuestions', 'approval'),
  listLimit: whole(1, 100),
  preRewindCheckpoint: choice('warn', 'require', 'off'),
  verifyByHash: flag,
  autoCheckpoint: auto,
  toolName: identifier,
  reportLanguage: choice('en', 'zh'),
  reportProvider: text,
  reportModel: text,
  reportMaxTokens: whole(1),
  reportRetries: whole(0, 8),
  namedPointLimit: whole(1, 100_000),
  barriers: choice('auto', 'on', 'off'),
  mayRestore: choice('allow', 'ask', 'never'),
  onCaptureFailure: choice('allow', 'block'),
  captureDeadlineMs: whole(50, 600_000),
  boundary: choice('before', 'after'),
}

const DEFAULTS: Config = {
  enabled: true,
  dataDir: undefined,
  untrackedFileMaxBytes: undefined,
  provider: 'auto',
  maxSnapshots: 50,
  maxSnapshotBytes: 512 * 1024 * 1024,
  pruneOnTurnEnd: true,
  mutationTools: undefined,
  excludeGlobs: undefined,
  confirmVia: 'auto',
  listLimit: 10,
  preRewindCheckpoint: 'warn',
  verifyByHash: false,
  autoCheckpoint: { enabled: true, intervalMinutes: 0 },
  toolName: 'checkpoint',
  reportLanguage: 'en',
  reportProvider: undefined,
  reportModel: undefined,
  reportMaxTokens: 1024,
  reportRetries: 2,
  namedPointLimit: 200,
  barriers: 'auto',
  mayRestore: 'allow',
  onCaptureFailure: 'allow',
  captureDeadlineMs: 1500,
  boundary: 'before',
}

/** Names of tools that this plugin registers itself: a mark that has the name of one cannot be registered. */
const TAKEN = ['checkpoint_list', 'checkpoint_restore', 'rewind', 'agent_checkpoint', 'agent_rewind', 'agent_checkpoint_list']

function readAll(raw: Record<string, unknown>, keys: Record<string, Read<unknown>>, prefix = ''): Record<string, unknown> {
  const read: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(raw)) {
    const reader = Object.hasOwn(keys, key) ? keys[key] : undefined
    if (reader === undefined) throw new ConfigError(prefix + key, `is not a setting; known: ${Object.keys(keys).join(', ')}`)
    if (value !== undefined && value !== null) read[key] = reader(value, prefix + key)
  }
  return read
}

/** What was read, and what has no effect here. */
export interface Settings {
  readonly config: Config
  readonly warnings: readonly string[]
}

/**
 * Reads a configuration as the profile gives it.
 *
 * @throws ConfigError naming the key.
 */
export function readConfig(raw: unknown): Settings {
  if (raw === undefined || raw === null) return { config: DEFAULTS, warnings: [] }
  if (typeof raw !== 'object' || Array.isArray(raw)) throw new ConfigError('config', 'must be an object')
  const { gitBin, snapshotDir, ...rest } = readAll(raw as Record<string, unknown>, KEYS)
  const config: Config = { ...DEFAULTS, ...(rest as Partial<Config>) }
  const dataDir = config.dataDir ?? (snapshotDir as string | undefined)
  if (snapshotDir !== undefined && snapshotDir !== dataDir)
    throw new ConfigError('snapshotDir', 'and dataDir name different directories; one store holds everything')
  if ((config.reportProvider === undefined) !== (config.reportModel === undefined))
    throw new ConfigError('reportProvider', 'and reportModel belong together')
  if (TAKEN.includes(config.toolName)) throw new ConfigError('toolName', `is the name of another tool: ${config.toolName}`)
  if (config.excludeGlobs?.some(glob => glob.includes(',')) === true) throw new ConfigError('excludeGlobs', 'must hold one pattern an entry, without commas')
  const warnings: string[] = []
  if (config.provider === 'copy') warnings.push('provider: copy has no effect: one store holds every workspace')
  if (gitBin !== undefined) warnings.push('gitBin has no effect: no git program is run')
  return { config: { ...config, dataDir: dataDir === undefined ? undefined : placeOf(dataDir) }, warnings }
}

/** The same as the host's loader asks for it: a standard schema, so that a bad value stops the load (TL09, TL42). */
export const Config = {
  '~standard': {
    version: 1 as const,
    vendor: 'rwd',
    validate(value: unknown): { value: unknown } | { issues: { message: string; path: string[] }[] } {
      try {
        readConfig(value)
        return { value: value ?? {} }
      } catch (error) {
        if (error instanceof ConfigError) return { issues: [{ message: error.message, path: [error.key] }] }
        throw error
      }
    },
  },
}

/** Settings of the engine that follow from the plugin's, as the variables that rwd reads. */
export function engineEnvironment(config: Config): Record<string, string> {
  const set: Record<string, string> = {
    RWD_RETENTION_MAX_CHECKPOINTS: String(config.maxSnapshots),
    RWD_RETENTION_MAX_BYTES: String(config.maxSnapshotBytes),
  }
  if (!config.pruneOnTurnEnd) set['RWD_RETENTION_ON_TURN_END'] = 'false'
  if (config.untrackedFileMaxBytes !== undefined)
    set['RWD_CAPTURE_UNTRACKED_MAX_BYTES'] = String(Math.ceil(config.untrackedFileMaxBytes))
  if (config.excludeGlobs !== undefined) set['RWD_CAPTURE_EXCLUDES'] = config.excludeGlobs.join(',')
  if (config.verifyByHash) set['RWD_CAPTURE_VERIFY_BY_HASH'] = 'true'
  return set
}

/** Tools that are known to change no file of the workspace. */
const READERS = new Set([
  'read', 'read_file', 'view', 'glob', 'grep', 'search', 'ls', 'list', 'find', 'todo_write', 'todo', 'ask_user',
  'ask_user_question', 'web_search', 'web_fetch', 'fetch', 'skill', 'wait', 'jobs', 'job_output', 'bash_output',
  'checkpoint_list', 'checkpoint_restore', 'agent_checkpoint', 'agent_rewind', 'agent_checkpoint_list', 'rewind',
])

/** Whether a call of this tool may change files: unknown tools count (design § 11), unless the user named the tools. */
export function isMutating(config: Config, tool: string): boolean {
  if (config.mutationTools !== undefined) return config.mutationTools.includes(tool)
  if ((MUTATION_TOOLS as readonly string[]).includes(tool)) return true
  return !READERS.has(tool) && tool !== config.toolName
}
