-- Neovim's LSP client against the example `typos_server`, once for each position encoding.
-- Usage: SERVER=PATH nvim --headless --clean -c 'luafile interop/lsp/neovim.lua' -c 'cquit'
-- Neovim exits with 0 if all assertions hold. Otherwise it reaches `cquit`, which exits with 1.

local LIMIT_MS = 30000

local function check(what, actual, expected)
  if not vim.deep_equal(actual, expected) then
    error(('FAIL  %s: got %s, want %s'):format(what, vim.inspect(actual), vim.inspect(expected)), 0)
  end
  io.stdout:write('ok    ' .. what .. '\n')
end

local function wait(what, condition)
  if not vim.wait(LIMIT_MS, condition, 10) then
    error(('FAIL  %s: nothing within %d s'):format(what, LIMIT_MS / 1000), 0)
  end
end

--- The kinds of the progress reports, as Neovim receives them.
local reports = {}
local show_progress = vim.lsp.handlers['$/progress']
vim.lsp.handlers['$/progress'] = function(err, result, context, config)
  table.insert(reports, result.value.kind)
  return show_progress(err, result, context, config)
end

--- A user who chooses the first code action.
vim.ui.select = function(items, _, choose)
  choose(items[1], 1)
end

--- Starts the server for the current buffer, with this unit of positions.
local function start(encoding)
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.general = vim.tbl_extend('force', capabilities.general or {}, { positionEncodings = { encoding } })
  local session = {}
  local id = assert(vim.lsp.start_client({
    name = 'typos',
    cmd = { os.getenv('SERVER'), '--stdio' },
    capabilities = capabilities,
    offset_encoding = encoding,
    flags = { debounce_text_changes = 0 },
    on_exit = function(code, signal)
      session.exit = { code, signal }
    end,
  }))
  vim.lsp.buf_attach_client(0, id)
  session.client = vim.lsp.get_client_by_id(id)
  wait('initialize', function()
    return session.client.initialized
  end)
  check(encoding .. ': the server agrees on the unit', session.client.server_capabilities.positionEncoding, encoding)
  return session
end

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, true)
end

--- The places of a word in the buffer, as lines and bytes.
local function places(word)
  local found = {}
  for index, line in ipairs(lines()) do
    for from, to in line:gmatch('()' .. word .. '()') do
      table.insert(found, { index - 1, from - 1, to - 1 })
    end
  end
  return found
end

--- What Neovim marks in the buffer, as lines and bytes.
local function marked()
  local found = vim.tbl_map(function(it)
    return { it.lnum, it.col, it.end_col }
  end, vim.diagnostic.get(0))
  table.sort(found, function(a, b)
    return a[1] < b[1] or a[1] == b[1] and a[2] < b[2]
  end)
  return found
end

--- Waits until exactly these words are marked.
local function await_marks(what, word)
  vim.wait(LIMIT_MS, function()
    return vim.deep_equal(marked(), places(word))
  end, 10)
  check(what, marked(), places(word))
end

--- The response to a request about the place of the cursor.
local function ask(method, encoding)
  local params = vim.lsp.util.make_position_params(0, encoding)
  for _, response in pairs(assert(vim.lsp.buf_request_sync(0, method, params, LIMIT_MS))) do
    return response.result
  end
end

local function reads(encoding)
  await_marks(encoding .. ': the diagnostics of the opened file', 'teh')
  vim.api.nvim_win_set_cursor(0, { 1, 6 })
  check(encoding .. ': hover', ask('textDocument/hover', encoding).contents.value, 'Write `the`')
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  check(encoding .. ': no hover beside the word', ask('textDocument/hover', encoding), nil)
  vim.api.nvim_win_set_cursor(0, { 2, #'💡 unt' })
  local completions = vim.lsp.util.text_document_completion_list_to_complete_items(
    ask('textDocument/completion', encoding), 'unt')
  check(encoding .. ': completion', vim.tbl_map(function(it) return it.word end, completions), { 'until' })
end

local function corrects(encoding)
  vim.api.nvim_win_set_cursor(0, { 1, 6 })
  vim.lsp.buf.code_action()
  vim.wait(LIMIT_MS, function() return lines()[1] == '😀 the cat' end, 10)
  check(encoding .. ': the code action changes the buffer', lines()[1], '😀 the cat')
  await_marks(encoding .. ': and the diagnostic disappears', 'teh')
end

--- Small edits before, inside and behind characters of each length.
local function edits(encoding)
  local pieces = { 'teh ', 'é ', '日本 teh ', '𐐀', '\n', ' 👩‍👩‍👧 ', 'teh\n', '' }
  for step = 1, 120 do
    local row = step * 7 % vim.api.nvim_buf_line_count(0)
    local line = lines()[row + 1]
    -- The byte of a character in this line.
    local column = vim.str_byteindex(line, step * 5 % (vim.fn.strchars(line) + 1))
    local stop = math.min(#line, column + (step % 3 == 0 and vim.fn.byteidx(line:sub(column + 1), 1) or 0))
    local text = vim.split(' ' .. pieces[step % #pieces + 1], '\n')
    vim.api.nvim_buf_set_text(0, row, column, row, math.max(column, stop), text)
  end
  -- A word that an edit has joined with another one is not misspelled.
  vim.cmd([[silent! %s/\<teh\>/ teh /g]])
  vim.cmd([[silent! %s/\S\@<=teh\|teh\S\@=//g]])
  check(encoding .. ': the edits leave misspelled words', #places('teh') > 5, true)
  await_marks(encoding .. ': the diagnostics after 120 edits', 'teh')
end

local function fixes_all(encoding, client)
  reports = {}
  local answer
  client.request('workspace/executeCommand', { command = 'typos.fixAll' }, function(err)
    answer = err or 'done'
  end, 0)
  wait('the command', function() return answer end)
  check(encoding .. ': the command is done', answer, 'done')
  check(encoding .. ': and has changed the buffer', places('teh'), {})
  wait('the end of the progress', function() return reports[#reports] == 'end' end)
  check(encoding .. ': its progress', reports, { 'begin', 'report', 'end' })
end

local function run(encoding)
  local path = vim.fn.tempname() .. '.txt'
  vim.fn.writefile({ '😀 teh cat', '💡 unt' }, path)
  vim.cmd('edit ' .. path)
  local session = start(encoding)
  reads(encoding)
  corrects(encoding)
  edits(encoding)
  fixes_all(encoding, session.client)
  session.client.stop()
  wait('the end of the server', function() return session.exit end)
  check(encoding .. ': the server exits with 0', session.exit, { 0, 0 })
  vim.cmd('bwipeout!')
end

for _, encoding in ipairs({ 'utf-16', 'utf-8', 'utf-32' }) do
  run(encoding)
end
vim.cmd('qall!')
