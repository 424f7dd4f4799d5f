import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { Config, ConfigError, engineEnvironment, isMutating, readConfig } from '../src/config.ts'
import { config } from './support.ts'

const refused = (raw: unknown): string => {
  try {
    readConfig(raw)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.match(error.message, /BAD_CONFIG/)
    return error.key
  }
  return 'nothing'
}

test('TL02 TL03 TL05 TL42 a value that is wrong is refused with its key', () => {
  const wrong: [string, unknown][] = [
    ['enabled', 'yes'],
    ['maxSnapshots', 0],
    ['maxSnapshots', 1.5],
    ['maxSnapshotBytes', 1023],
    ['provider', 'svn'],
    ['preRewindCheckpoint', 'maybe'],
    ['confirmVia', 'mail'],
    ['listLimit', 0],
    ['listLimit', 101],
    ['mutationTools', 'bash'],
    ['mutationTools', [1]],
    ['excludeGlobs', [null]],
    ['snapshotDir', ' '],
    ['gitBin', 3],
    ['pruneOnTurnEnd', 1],
    ['verifyByHash', 'no'],
    ['untrackedFileMaxBytes', 0],
    ['untrackedFileMaxBytes', Infinity],
    ['untrackedFileMaxBytes', Number.NaN],
    ['dataDir', ''],
    ['toolName', 'a b'],
    ['toolName', 'checkpoint_list'],
    ['reportLanguage', 'de'],
    ['reportMaxTokens', 0],
    ['reportRetries', 9],
    ['mayRestore', 'sometimes'],
    ['barriers', true],
    ['autoCheckpoint', []],
  ]
  for (const [key, value] of wrong) assert.equal(refused({ [key]: value }), key, `${key} = ${String(value)}`)
  assert.equal(refused({ autoCheckpoint: { intervalMinutes: 10_081 } }), 'autoCheckpoint.intervalMinutes')
  assert.equal(refused({ autoCheckpoint: { every: 1 } }), 'autoCheckpoint.every')
  assert.equal(refused({ maxSnapshot: 5 }), 'maxSnapshot')
  assert.equal(refused({ toString: 5 }), 'toString')
  assert.equal(refused([]), 'config')
})

test('TL44 keys that contradict each other are refused', () => {
  assert.equal(refused({ dataDir: '/a', snapshotDir: '/b' }), 'snapshotDir')
  assert.equal(refused({ reportModel: 'm' }), 'reportProvider')
  assert.equal(refused({ dataDir: '/a', snapshotDir: '/a' }), 'nothing')
})

test('TL08 TL09 TL41 the loader gets the same answer as a standard schema', () => {
  const { validate } = Config['~standard']
  const bad = validate({ listLimit: 0 })
  assert.ok('issues' in bad && bad.issues[0]?.message.includes('listLimit') === true)
  assert.deepEqual(validate({ listLimit: 100 }), { value: { listLimit: 100 } })
  assert.deepEqual(validate(undefined), { value: {} })
})

test('c002_48 the defaults are those of the source systems', () => {
  const { config, warnings } = readConfig(undefined)
  assert.deepEqual(warnings, [])
  assert.deepEqual([config.maxSnapshots, config.maxSnapshotBytes, config.listLimit], [50, 536_870_912, 10])
  assert.deepEqual([config.provider, config.confirmVia, config.preRewindCheckpoint], ['auto', 'auto', 'warn'])
  assert.deepEqual([config.toolName, config.reportLanguage, config.reportMaxTokens, config.reportRetries], ['checkpoint', 'en', 1024, 2])
})

test('deviation 8: keys without effect warn once each, and snapshotDir is the data directory', () => {
  const { config, warnings } = readConfig({ provider: 'copy', gitBin: 'git', snapshotDir: '/points' })
  assert.equal(config.dataDir, '/points')
  assert.equal(warnings.length, 2)
})

test('design § 11: unknown tools count as mutating, readers do not; a list of the user is the list', () => {
  assert.deepEqual(['bash', 'write', 'mcp__thing', 'read', 'grep', 'checkpoint'].map(tool => isMutating(config(), tool)), [true, true, true, false, false, false])
  const own = config({ mutationTools: ['only'] })
  assert.deepEqual(['only', 'bash', 'mcp__thing'].map(tool => isMutating(own, tool)), [true, false, false])
})

test('settings reach the engine as its variables', () => {
  const set = engineEnvironment(config({ maxSnapshots: 7, untrackedFileMaxBytes: 10.5, excludeGlobs: ['a', 'b/**'], verifyByHash: true }))
  assert.equal(set['RWD_RETENTION_MAX_CHECKPOINTS'], '7')
  assert.equal(set['RWD_CAPTURE_UNTRACKED_MAX_BYTES'], '11')
  assert.equal(set['RWD_CAPTURE_EXCLUDES'], 'a,b/**')
  assert.equal(set['RWD_CAPTURE_VERIFY_BY_HASH'], 'true')
  assert.equal(set['RWD_RETENTION_ON_TURN_END'], undefined)
  assert.equal(engineEnvironment(config({ pruneOnTurnEnd: false }))['RWD_RETENTION_ON_TURN_END'], 'false')
  assert.equal(refused({ excludeGlobs: ['a,b'] }), 'excludeGlobs')
})

test('TL39 the page names every setting, and no other', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const table = readme.slice(readme.indexOf('## Settings')).split('\n').filter(line => line.startsWith('| `'))
  const named = table.flatMap(line => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, key]) => key ?? ''))
  const known = (raw: unknown): string[] => {
    try {
      readConfig(raw)
    } catch (error) {
      return /known: (.*)$/.exec((error as Error).message)?.[1]?.split(', ') ?? []
    }
    return []
  }
  const inner = known({ autoCheckpoint: { nothing: 1 } })
  const keys = known({ nothing: 1 }).filter(key => key !== 'autoCheckpoint')
  assert.ok(keys.length > 20 && inner.length === 2)
  assert.deepEqual(named.filter(key => !key.startsWith('.') && !key.includes('.')).sort(), keys.sort())
  assert.deepEqual(named.filter(key => key.includes('.')).map(key => key.split('.')[1]).sort(), inner.sort())
})
